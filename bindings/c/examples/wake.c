/* wake MELSPECTROGRAM EMBEDDING HEAD [DUMP]: the chain of an openWakeWord detector on a stream. Every 80 ms of sound
 * give 8 frames of the spectrogram, the last 76 frames an embedding, as many embeddings as the head wants (16 or so) a
 * score; the highest score of each second is printed. The sound is made here: eight seconds of sweeps and clicks in
 * hiss. With DUMP, the samples (128000 floats) and the scores, one a chunk, are written to that file as they are in
 * memory. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quartet_c.h"

enum {
  RATE = 16000,
  CHUNK = 1280,
  BEFORE = 480,
  CHUNKS = 100,
  BINS = 32,
  FRAMES = 76,
  STEP = 8,
  WIDTH = 96,
  HISTORY = 64
};

static quartet_error* error;

static void check(int32_t status) {
  if (status == QUARTET_OK) return;
  fprintf(stderr, "wake: %s\n", quartet_error_message(error, NULL));
  exit(1);
}

static quartet_program* load(quartet_context* context, const char* path) {
  quartet_graph* graph;
  quartet_program* program;
  check(quartet_graph_import_onnx_file(context, path, SIZE_MAX, NULL, &graph, &error));
  check(quartet_compile(context, graph, NULL, NULL, &program, &error));
  quartet_graph_release(graph);
  return program;
}

/* One input and one output, both f32; the output's dims follow from the input's. */
static void run(const quartet_program* program, float* in, int32_t rank, const int64_t* dims, float* out,
                size_t out_count) {
  quartet_tensor input, output;
  size_t count = 1;
  int32_t i;
  memset(&input, 0, sizeof input);
  memset(&output, 0, sizeof output);
  input.struct_size = output.struct_size = sizeof input;
  input.dtype = QUARTET_DTYPE_F32, input.rank = rank, input.data = in;
  for (i = 0; i < rank; ++i) input.dims[i] = dims[i], count *= (size_t)dims[i];
  input.bytes = count * sizeof *in;
  output.dtype = QUARTET_DTYPE_F32, output.data = out, output.bytes = out_count * sizeof *out;
  check(quartet_run_sync(program, &input, 1, &output, 1, &error));
}

/* How many embeddings the head looks at. */
static int64_t history_of(const quartet_program* head) {
  quartet_tensor_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  check(quartet_program_input_info(head, 0, &info, &error));
  if (info.rank != 3 || info.dims[1] < 1 || info.dims[1] > HISTORY) {
    fprintf(stderr, "wake: this is no head: its input is not [1, 1 to %d, %d]\n", HISTORY, WIDTH);
    exit(1);
  }
  return info.dims[1];
}

static void make_sound(float* samples) {
  const double pi = 3.14159265358979323846;
  uint32_t seed = 7;
  int i;
  for (i = 0; i < CHUNK * CHUNKS; ++i) {
    const double t = (double)i / RATE, part = t - floor(t);
    seed = seed * 1664525u + 1013904223u;
    samples[i] = 100.0f * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    samples[i] += (float)(6000.0 * exp(-3.0 * part) * sin(2 * pi * (300.0 + 900.0 * part) * part));
    if (i % (RATE / 4) < 16) samples[i] += 8000.0f;
  }
}

int main(int argc, char** argv) {
  static float samples[CHUNK * CHUNKS], scores[CHUNKS], mel[FRAMES * BINS], history[HISTORY * WIDTH];
  static const int64_t mel_dims[2] = {1, BEFORE + CHUNK}, embedding_dims[4] = {1, FRAMES, BINS, 1};
  int64_t head_dims[3] = {1, 0, WIDTH};
  float* last;
  quartet_context* context;
  quartet_program *spectrogram, *embedding, *head;
  float window[BEFORE + CHUNK] = {0}, frames[STEP * BINS];
  double best = 0;
  int i, k;

  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: wake MELSPECTROGRAM EMBEDDING HEAD [DUMP]\n");
    return 2;
  }
  check(quartet_context_create(NULL, &context, &error));
  spectrogram = load(context, argv[1]), embedding = load(context, argv[2]), head = load(context, argv[3]);
  head_dims[1] = history_of(head);
  last = history + (HISTORY - 1) * WIDTH;
  make_sound(samples);
  for (i = 0; i < CHUNKS; ++i) {
    memmove(window, window + CHUNK, BEFORE * sizeof *window);
    memcpy(window + BEFORE, samples + i * CHUNK, CHUNK * sizeof *window);
    run(spectrogram, window, 2, mel_dims, frames, STEP * BINS);
    memmove(mel, mel + STEP * BINS, (FRAMES - STEP) * BINS * sizeof *mel);
    for (k = 0; k < STEP * BINS; ++k) mel[(FRAMES - STEP) * BINS + k] = frames[k] / 10.0f + 2.0f;
    memmove(history, history + WIDTH, (HISTORY - 1) * WIDTH * sizeof *history);
    run(embedding, mel, 4, embedding_dims, last, WIDTH);
    run(head, last - (head_dims[1] - 1) * WIDTH, 3, head_dims, &scores[i], 1);
    if (scores[i] > best) best = scores[i];
    if ((i + 1) * CHUNK % RATE >= CHUNK && i + 1 < CHUNKS) continue;
    printf("up to %.1f s: %.3f\n", (double)(i + 1) * CHUNK / RATE, best);
    best = 0;
  }
  if (argc == 5) {
    FILE* file = fopen(argv[4], "wb");
    if (file == NULL || fwrite(samples, sizeof samples, 1, file) != 1 || fwrite(scores, sizeof scores, 1, file) != 1 ||
        fclose(file) != 0) {
      fprintf(stderr, "wake: cannot write '%s'\n", argv[4]);
      return 1;
    }
  }
  quartet_program_release(spectrogram), quartet_program_release(embedding), quartet_program_release(head);
  quartet_context_release(context);
  return 0;
}
