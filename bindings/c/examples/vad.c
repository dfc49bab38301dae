/* vad MODEL [DUMP]: listens to 200 chunks of sound with a silero voice activity model (16 kHz), whose state is fed back
 * from chunk to chunk, and prints where it hears speech. The sound is made here: hiss, a few spoken-like vowels, hiss.
 * With DUMP, the samples (102400 floats) and the 200 probabilities are written to that file as they are in memory. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quartet_c.h"

enum { RATE = 16000, CHUNK = 512, CONTEXT = 64, CHUNKS = 200, STATE = 2 * 1 * 128 };

static quartet_error* error;

static void check(int32_t status) {
  if (status == QUARTET_OK) return;
  fprintf(stderr, "vad: %s\n", quartet_error_message(error, NULL));
  exit(1);
}

static float noise(void) {
  static uint32_t seed = 1;
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / 8388608.0f - 1.0f;
}

/* A voice at time t: harmonics of a gliding pitch, loud near the formants of a vowel that changes with the syllable. */
static double voice(double t) {
  static const double formants[4][3] = {{730, 1090, 2440}, {270, 2290, 3010}, {530, 1840, 2480}, {300, 870, 2240}};
  const double pi = 3.14159265358979323846, syllable = t * 4.0;
  const double* vowel = formants[(int)syllable % 4];
  const double loud = pow(sin(pi * (syllable - floor(syllable))), 0.7), pitch = 120.0 + 20.0 * sin(2 * pi * 0.7 * t);
  double sum = 0;
  int k, f;
  for (k = 1; k * pitch < 4000; ++k) {
    double gain = 0;
    for (f = 0; f < 3; ++f) gain += exp(-fabs(k * pitch - vowel[f]) / (60.0 + 40.0 * f)) / (f + 1);
    sum += (gain + 0.02) * sin(2 * pi * k * (120.0 * t - 20.0 / (2 * pi * 0.7) * cos(2 * pi * 0.7 * t)));
  }
  return loud * sum;
}

static void make_sound(float* samples) {
  int i;
  for (i = 0; i < CHUNK * CHUNKS; ++i) {
    const double t = (double)i / RATE;
    samples[i] = 0.002f * noise();
    if (t > 1.5 && t < 4.5) samples[i] += (float)(0.2 * voice(t - 1.5));
  }
}

static quartet_tensor tensor(int32_t dtype, int32_t rank, void* data, size_t bytes) {
  quartet_tensor t;
  memset(&t, 0, sizeof t);
  t.struct_size = sizeof t;
  t.dtype = dtype, t.rank = rank, t.data = data, t.bytes = bytes;
  return t;
}

static void listen(const quartet_program* program, const float* samples, float* probabilities) {
  float chunk[CONTEXT + CHUNK] = {0}, state[STATE] = {0}, next[STATE], probability;
  int64_t rate = RATE;
  int i;
  quartet_tensor in[3], out[2];
  in[0] = tensor(QUARTET_DTYPE_F32, 2, chunk, sizeof chunk), in[0].dims[0] = 1, in[0].dims[1] = CONTEXT + CHUNK;
  in[1] = tensor(QUARTET_DTYPE_F32, 3, state, sizeof state), in[1].dims[0] = 2, in[1].dims[1] = 1, in[1].dims[2] = 128;
  in[2] = tensor(QUARTET_DTYPE_I64, 0, &rate, sizeof rate);
  for (i = 0; i < CHUNKS; ++i) {
    /* The end of the chunk before stands at the front. */
    memmove(chunk, chunk + CHUNK, CONTEXT * sizeof *chunk);
    memcpy(chunk + CONTEXT, samples + i * CHUNK, CHUNK * sizeof *chunk);
    out[0] = tensor(QUARTET_DTYPE_F32, 0, &probability, sizeof probability);
    out[1] = tensor(QUARTET_DTYPE_F32, 0, next, sizeof next);
    check(quartet_run_sync(program, in, 3, out, 2, &error));
    memcpy(state, next, sizeof state);
    probabilities[i] = probability;
  }
}

static void print_speech(const float* probabilities) {
  int i, begin = -1;
  for (i = 0; i <= CHUNKS; ++i) {
    const int speaks = i < CHUNKS && probabilities[i] >= 0.5f;
    if (speaks && begin < 0) begin = i;
    if (speaks || begin < 0) continue;
    printf("speech from %.2f s to %.2f s\n", (double)begin * CHUNK / RATE, (double)i * CHUNK / RATE);
    begin = -1;
  }
}

int main(int argc, char** argv) {
  static float samples[CHUNK * CHUNKS], probabilities[CHUNKS];
  quartet_context* context;
  quartet_graph* graph;
  quartet_program* program;

  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: vad MODEL [DUMP]\n");
    return 2;
  }
  check(quartet_context_create(NULL, &context, &error));
  check(quartet_graph_import_onnx_file(context, argv[1], SIZE_MAX, NULL, &graph, &error));
  check(quartet_compile(context, graph, NULL, NULL, &program, &error));
  make_sound(samples);
  listen(program, samples, probabilities);
  print_speech(probabilities);
  if (argc == 3) {
    FILE* file = fopen(argv[2], "wb");
    if (file == NULL || fwrite(samples, sizeof samples, 1, file) != 1 ||
        fwrite(probabilities, sizeof probabilities, 1, file) != 1 || fclose(file) != 0) {
      fprintf(stderr, "vad: cannot write '%s'\n", argv[2]);
      return 1;
    }
  }
  quartet_program_release(program);
  quartet_graph_release(graph);
  quartet_context_release(context);
  return 0;
}
