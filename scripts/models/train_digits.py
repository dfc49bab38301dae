#!/usr/bin/env python3
"""Trains the demo's digit recogniser and writes tests/models/digits.

Run where these are installed, exactly:
    pip install numpy==2.4.6 scikit-learn==1.9.1 onnx==1.23.2 onnxruntime==1.32.0

The network is a perceptron with one hidden layer, 64 -> 32 -> 10, on 8x8 images whose pixels count from 0 to 16; the scaling to
[0, 1] is inside the model. It writes
    digits.onnx        pixels [batch, 64] f32 -> probabilities [batch, 10] f32
    sample.npy         one image of the test half, [1, 64] f32, for the demo
    cases/NAME/        input_0.npy, output_0.npy, case.json, as `quartet check` reads them; outputs by ONNX Runtime on the CPU
"""

import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SEED = 7
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/models/digits"


def train():
    """The fitted classifier and the half of the data it has not seen, unscaled."""
    pixels, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(pixels, labels, test_size=0.5, random_state=SEED, stratify=labels)
    network = MLPClassifier(hidden_layer_sizes=(32,), activation="relu", alpha=1e-3, max_iter=600, random_state=SEED)
    network.fit(train_x / 16.0, train_y)
    return network, test_x.astype(np.float32), test_y


def to_onnx(network):
    """The network as an ONNX model: Mul (scaling), Gemm, Relu, Gemm, Softmax."""
    constants = {"scale": np.float32(1.0 / 16.0)}
    for i, (weight, bias) in enumerate(zip(network.coefs_, network.intercepts_)):
        constants[f"w{i}"] = weight.astype(np.float32)
        constants[f"b{i}"] = bias.astype(np.float32)
    nodes = [
        helper.make_node("Mul", ["pixels", "scale"], ["scaled"], name="scale_pixels"),
        helper.make_node("Gemm", ["scaled", "w0", "b0"], ["hidden"], name="hidden_layer"),
        helper.make_node("Relu", ["hidden"], ["active"], name="activation"),
        helper.make_node("Gemm", ["active", "w1", "b1"], ["logits"], name="output_layer"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="quartet train_digits.py")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def write_case(name, session, pixels):
    folder = OUT / "cases" / name
    folder.mkdir(parents=True)
    (probabilities,) = session.run(None, {"pixels": pixels})
    np.save(folder / "input_0.npy", pixels)
    np.save(folder / "output_0.npy", probabilities)
    case = {
        "model": "digits.onnx",
        "inputs": [{"name": "pixels", "file": "input_0.npy"}],
        "outputs": [{"name": "probabilities", "dims": list(probabilities.shape), "file": "output_0.npy"}],
        "tolerance": {"rtol": 1e-4, "atol": 1e-6},
    }
    (folder / "case.json").write_text(json.dumps(case, indent=2) + "\n", encoding="utf-8")


def main():
    network, pixels, labels = train()
    model = to_onnx(network)
    shutil.rmtree(OUT / "cases", ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "digits.onnx").write_bytes(model.SerializeToString(deterministic=True))

    session = onnxruntime.InferenceSession(str(OUT / "digits.onnx"), providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(None, {"pixels": pixels})
    accuracy = float(np.mean(np.argmax(probabilities, axis=1) == labels))
    print(f"{len(labels)} unseen digits, {100 * accuracy:.1f} % recognised")
    assert accuracy > 0.95, "the recogniser got worse than the demo may show"

    seven = int(np.flatnonzero((labels == 7) & (probabilities[:, 7] > 0.99))[0])
    np.save(OUT / "sample.npy", pixels[seven : seven + 1])
    write_case("one", session, pixels[seven : seven + 1])
    write_case("batch_of_ten", session, np.stack([pixels[np.flatnonzero(labels == d)[0]] for d in range(10)]))
    write_case("batch_of_33", session, pixels[:33])
    write_case("blank_and_full", session, np.stack([np.zeros(64, np.float32), np.full(64, 16, np.float32)]))


if __name__ == "__main__":
    main()
