#!/usr/bin/env python3
"""start_times.py QUARTET MODELS GOLDEN: for each model with a golden case the cold compile and the warm start, as a Markdown table.
Cold: graph to loaded program without a cache, on all cores (`compile_ms`, best of 3). Warm: wall time of a whole `quartet run`
process that finds the program in the cache, less one run of the model (best of 15). Sizes in MB, times in ms."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time


def bench(quartet, model, case, *more):
    command = [quartet, "bench", str(model), "--case", str(case), "--json", "--runs", "10", *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def inputs_of(case):
    description = json.loads((case / "case.json").read_text())
    return [f"{entry['name']}={case / entry['file']}" for entry in description["inputs"]]


def warm_start(quartet, model, case, cache):
    command = [quartet, "run", str(model), "--cache", cache]
    for text in inputs_of(case):
        command += ["--input", text]
    times = []
    for _ in range(16):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times[1:])


def main():
    quartet, models, golden = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    print("| model | MB | cold compile | warm start | run |\n|---|---|---|---|---|")
    for folder in sorted(path for path in golden.iterdir() if path.is_dir()):
        model, case = models / f"{folder.name}.onnx", sorted(folder.iterdir())[0]
        cold = [bench(quartet, model, case, "--cache", "off") for _ in range(3)]
        run = min(result["median_ms"] for result in cold)
        with tempfile.TemporaryDirectory() as cache:
            warm = warm_start(quartet, model, case, cache) - run
        print(f"| {folder.name} | {model.stat().st_size / 1e6:.1f} | {min(r['compile_ms'] for r in cold):.0f} | {warm:.1f} "
              f"| {run:.3f} |", flush=True)


main()
