#!/usr/bin/env python3
"""streams_against_onnxruntime.py VAD WAKE MODELS: runs the two streaming examples on the models in the folder MODELS, replays the
sound they made through ONNX Runtime chunk by chunk, and compares every probability and score (1e-3 relative, 1e-4 absolute).
Needs onnxruntime==1.32.0 and numpy==2.4.6; gives 77 (skipped) without them or without the models."""
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


def dumped(command):
    """What an example writes into its last argument, as floats."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "dump")
        subprocess.run([*command, str(file)], check=True)
        return np.fromfile(file, np.float32)


def session(path):
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


def vad(program, model):
    values = dumped([program, model])
    samples, got = values[:-200], values[-200:]
    run, state, chunk, want = session(model), np.zeros((2, 1, 128), np.float32), np.zeros((1, 576), np.float32), []
    for part in samples.reshape(200, 512):
        chunk = np.concatenate([chunk[:, 512:], part[None]], axis=1)
        probability, state = run.run(None, {"input": chunk, "state": state, "sr": np.array(16000)})
        want.append(probability[0, 0])
    return got, np.array(want)


def wake(program, mel_model, embedding_model, head_model):
    values = dumped([program, mel_model, embedding_model, head_model])
    samples, got = values[:-100], values[-100:]
    mel, embedding, head = session(mel_model), session(embedding_model), session(head_model)
    window, frames, history, want = np.zeros((1, 1760), np.float32), np.zeros((76, 32), np.float32), np.zeros((16, 96), np.float32), []
    for part in samples.reshape(100, 1280):
        window = np.concatenate([window[:, 1280:], part[None]], axis=1)
        new = mel.run(None, {mel.get_inputs()[0].name: window})[0].reshape(8, 32)
        frames = np.concatenate([frames[8:], new / np.float32(10) + np.float32(2)])
        vector = embedding.run(None, {embedding.get_inputs()[0].name: frames[None, :, :, None]})[0].reshape(1, 96)
        history = np.concatenate([history[1:], vector])
        want.append(head.run(None, {head.get_inputs()[0].name: history[None]})[0][0, 0])
    return got, np.array(want)


def main():
    vad_program, wake_program, folder = sys.argv[1:]
    names = ["silero_vad_v6", "oww_melspectrogram", "oww_embedding_model", "oww_alexa_v0.1", "oww_hey_mycroft_v0.1"]
    silero, mel, embedding, *heads = [str(pathlib.Path(folder, name + ".onnx")) for name in names]
    if not all(pathlib.Path(path).exists() for path in (silero, mel, embedding, *heads)):
        print(f"skipped: no models in {folder}")
        sys.exit(77)
    failed = 0
    for name, (got, want) in {
        "vad": vad(vad_program, silero),
        **{pathlib.Path(head).stem: wake(wake_program, mel, embedding, head) for head in heads},
    }.items():
        good = np.abs(got - want) <= 1e-3 * np.abs(want) + 1e-4
        print(f"{name}: {good.sum()} of {good.size} agree, largest difference {np.abs(got - want).max():.2g}, "
              f"values from {want.min():.3g} to {want.max():.3g}")
        failed += not good.all()
    sys.exit(1 if failed else 0)


main()
