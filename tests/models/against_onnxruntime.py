#!/usr/bin/env python3
"""against_onnxruntime.py QUARTET MODEL.onnx... [--rounds N]: runs each model on fresh random inputs with the quartet command
and with ONNX Runtime and compares the outputs as `quartet check` does. Symbolic dims take the sizes 1, 3 and 17 in turn.
Needs onnxruntime==1.32.0 and numpy==2.4.6; gives 77 (skipped) where they are not installed. Closes with 'N passed, N failed'."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime as ort
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
          "tensor(bool)": np.bool_, "tensor(float16)": np.float16}


def random_inputs(session, rng, size):
    inputs = []
    for info in session.get_inputs():
        shape = [d if isinstance(d, int) else size for d in info.shape]
        dtype = DTYPES[info.type]
        values = rng.uniform(-1, 1, shape) if np.issubdtype(dtype, np.floating) else rng.integers(0, 2, shape)
        inputs.append(values.astype(dtype))
    return inputs


def mistrusted(array):
    """An output that is nearly one value proves nothing."""
    return array.size >= 32 and np.unique(array, return_counts=True)[1].max() > 0.95 * array.size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quartet")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    passed = failed = 0
    for model in arguments.models:
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        rng = np.random.default_rng(arguments.seed)
        with tempfile.TemporaryDirectory() as folder:
            cases = []
            for index in range(arguments.rounds):
                inputs = random_inputs(session, rng, (1, 3, 17)[index % 3])
                names = [info.name for info in session.get_inputs()]
                outputs = session.run(None, dict(zip(names, inputs)))
                case = pathlib.Path(folder, f"round_{index}")
                case.mkdir()
                for i, array in enumerate(inputs):
                    np.save(case / f"input_{i}.npy", array)
                for i, array in enumerate(outputs):
                    np.save(case / f"output_{i}.npy", array)
                    if mistrusted(array):
                        print(f"mistrusted: output {i} of {model} is nearly one value")
                        failed += 1
                cases.append(str(case))
            run = subprocess.run([arguments.quartet, "check", model, *cases, "--cache", "off", "--json"],
                                 capture_output=True, text=True, check=False)
            try:
                report = json.loads(run.stdout)
            except json.JSONDecodeError:
                print(f"FAIL {model}: {run.stderr.strip()}")
                failed += len(cases)
                continue
            passed += report["passed"]
            failed += report["failed"]
            for case in report["cases"]:
                if not case["passed"]:
                    print(f"FAIL {model}: {case['problem']}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
