/* quartet_c.h: the C interface of Quartet, version 1.0.
 *
 * Quartet compiles tensor graphs while a program runs and remembers what it compiled. This header is the whole
 * contract: what is not said here is not promised.
 *
 * ---- The way through
 *
 *   quartet_context_create(NULL, &context, &error)    all defaults: cache in memory, private threads, silent
 *
 *   a graph, one of
 *     quartet_builder_create, _input, _constant, _op, _output, _finish
 *     quartet_graph_parse(context, text, size, &graph, &error)
 *     quartet_graph_import_onnx_file(context, path, size, NULL, &graph, &error)
 *
 *   a program, one of (first device, default options)
 *     quartet_compile(context, graph, NULL, NULL, &program, &error)
 *     quartet_compile_async(context, graph, NULL, NULL, &future, &error)
 *
 *   a run, one of
 *     quartet_run_sync(program, inputs, n, outputs, m, &error)    simple; from many threads at once
 *     quartet_binding_create, _set_input, _set_output, _run       repeated, without allocation or locks
 *
 *   release everything, in any order
 *
 * A tensor crosses as a plain struct quartet_tensor: element type, rank, dims, and memory that is either a host pointer
 * (`data` with `bytes`) or a quartet_buffer. Inputs carry their actual dims. For an output there are three ways:
 *
 *   1. Give memory and its capacity in `bytes`: the result is written there, dtype, rank and dims are filled in.
 *   2. Leave `data` and `buffer` NULL: a buffer of the right size is made, and the caller owns `buffer` (+1).
 *   3. Call quartet_program_output_shapes first, which fills dtype, rank, dims and bytes from the inputs' dims alone,
 *      then allocate and go the first way.
 *
 * ---- Rules
 *
 * Status: a fallible function returns an int32_t, QUARTET_OK (0) or a QUARTET_E_* value, and takes as its last
 * parameter a nullable `quartet_error** error`. NULL: no error object is made. Otherwise it is set to NULL on success
 * and to an owned error on failure (quartet_error_release). On failure every other output is NULL or 0 and nothing
 * needs cleaning up. Any fallible function may also return QUARTET_E_INTERNAL, a bug in Quartet. No error state is kept
 * by thread or globally.
 *
 * Ownership: what create, alloc, wrap, load or an out-parameter of handle type gives is owned by the caller; what get
 * and find give is borrowed from the parent. Shared objects have retain and release, single-owner objects have destroy;
 * all accept NULL and return nothing. An object keeps what it needs alive, so any order of release is legal. User data
 * given with a callback comes with a free function (or NULL) that is called exactly once, also when the call itself
 * fails.
 *
 * Strings: UTF-8. In: pointer and size; size SIZE_MAX means NUL-terminated. Out: a borrowed pointer, NUL-terminated,
 * its size in an optional out-parameter. Paths are UTF-8 on every system.
 *
 * Structs: the first field is struct_size, set by the caller to sizeof. All-zero is the default. Fields are only ever
 * appended. A longer struct is accepted when what this library does not know of it is zero; else it is
 * QUARTET_E_UNSUPPORTED, as is an unknown option, flag bit or enumerated value. An output struct is filled as far as
 * its struct_size says and zeroed beyond what this library knows. Arrays of structs step by the struct_size of their
 * first element, which all elements share.
 *
 * Threads: any function may be called from any thread. Builder, options and binding objects are used by one thread at a
 * time; every other object may be shared freely.
 *
 * Guest: Quartet writes to no stream, reads no environment variable, installs no signal handler and keeps the host's
 * floating-point control word. In a forked child, objects of the parent answer QUARTET_E_FORKED.
 *
 * ---- The grammar of this file, for generators
 *
 * One declaration a statement. Each function is preceded by one comment that ends in these tags, in this order, each
 * beginning a line; a long list may go on in the next line.
 *
 *   since:      <major>.<minor>
 *   thread:     any | exclusive:<parameter>
 *   blocks:     no | io | compile | run | wait
 *   calls-back: none | a comma-separated list of logger, executor, done, free; the context's allocator may be called by
 *               every function that takes an object
 *   owns:       none | a comma-separated list of
 *                 new <parameter or return> <releasing function>: the caller owns what is stored there
 *                 borrow <parameter or return> <parameter>: valid as long as the second one is (library: always)
 *                 keep <parameter>: user data taken over, freed by its free function
 *   errors:     none | a comma-separated list of status names as quartet_status_name gives them
 */
#ifndef QUARTET_C_H
#define QUARTET_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define QUARTET_CALL __cdecl
#if defined(QUARTET_BUILDING)
#define QUARTET_API __declspec(dllexport)
#else
#define QUARTET_API __declspec(dllimport)
#endif
#else
#define QUARTET_CALL
#if defined(__GNUC__)
#define QUARTET_API __attribute__((visibility("default")))
#else
#define QUARTET_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ================================================================================================== constants ======
 */

/* The version this header describes. A binding requires an equal major and a minor at least its own. */
#define QUARTET_ABI_MAJOR 1
#define QUARTET_ABI_MINOR 0

/* Greatest rank of a tensor that crosses this interface. */
#define QUARTET_MAX_RANK 16

/* What a dims array says where an extent is not known: in quartet_tensor_info.dims. */
#define QUARTET_DIM_UNKNOWN (-1)

/* An operand left out where an op allows it. */
#define QUARTET_NO_VALUE (-1)

enum quartet_status_value {
  QUARTET_OK = 0,
  QUARTET_E_INVALID_ARGUMENT = 1,     /* the caller's value is wrong: null, shape, type, name */
  QUARTET_E_OUT_OF_MEMORY = 2,        /* an allocation failed */
  QUARTET_E_RESOURCE_EXHAUSTED = 3,   /* a stated limit or budget would be passed */
  QUARTET_E_UNSUPPORTED = 4,          /* well formed, but this build or target cannot do it */
  QUARTET_E_NOT_FOUND = 5,            /* no such name, file, device or entry */
  QUARTET_E_CORRUPT = 6,              /* bytes that are not what they claim to be */
  QUARTET_E_IO = 7,                   /* the operating system refused */
  QUARTET_E_CANCELLED = 8,            /* the caller asked to stop */
  QUARTET_E_TIMEOUT = 9,              /* not finished within the given time */
  QUARTET_E_FAILED_PRECONDITION = 10, /* right call, wrong state: a spent builder, an unset binding */
  QUARTET_E_VERSION_MISMATCH = 11,    /* two parts that do not belong together */
  QUARTET_E_DEVICE = 12,              /* a driver or device failed */
  QUARTET_E_COMPILER = 13,            /* a backend compiler failed */
  QUARTET_E_INTERNAL = 14,            /* an invariant of Quartet broke: a bug */
  QUARTET_E_FORKED = 15               /* the object belongs to the parent process */
};

enum quartet_dtype_value {
  QUARTET_DTYPE_INVALID = 0,
  QUARTET_DTYPE_F64 = 1,
  QUARTET_DTYPE_F32 = 2,
  QUARTET_DTYPE_F16 = 3,
  QUARTET_DTYPE_BF16 = 4,
  QUARTET_DTYPE_I64 = 5,
  QUARTET_DTYPE_I32 = 6,
  QUARTET_DTYPE_I16 = 7,
  QUARTET_DTYPE_I8 = 8,
  QUARTET_DTYPE_U64 = 9,
  QUARTET_DTYPE_U32 = 10,
  QUARTET_DTYPE_U16 = 11,
  QUARTET_DTYPE_U8 = 12,
  QUARTET_DTYPE_BOOL = 13 /* one byte, 0 or 1 */
};

enum quartet_feature_value {
  QUARTET_FEATURE_CPU_COMPILER = 1, /* this build can compile for CPUs when libquartet_llvm is beside it */
  QUARTET_FEATURE_DISK_CACHE = 2,
  QUARTET_FEATURE_ONNX = 3
};

enum quartet_log_level_value {
  QUARTET_LOG_OFF = 0,
  QUARTET_LOG_ERROR = 1,
  QUARTET_LOG_WARNING = 2,
  QUARTET_LOG_INFO = 3,
  QUARTET_LOG_DEBUG = 4
};

enum quartet_cache_mode_value {
  QUARTET_CACHE_MEMORY = 0,         /* programs are remembered as long as the context lives */
  QUARTET_CACHE_DISK = 1,           /* and in a database in the directory `path` */
  QUARTET_CACHE_DISK_READ_ONLY = 2, /* the database is read, never written */
  QUARTET_CACHE_OFF = 3             /* every compile compiles */
};

enum quartet_device_kind_value { QUARTET_DEVICE_CPU = 1 };

enum quartet_option_type_value {
  QUARTET_OPTION_BOOL = 1, /* "on" or "off"; as a number 1 or 0 */
  QUARTET_OPTION_INTEGER = 2,
  QUARTET_OPTION_CHOICE = 3 /* one of a list of words; as a number the word's index in the list */
};

/* Stable numbers of the options; quartet_option_describe tells the rest. */
enum quartet_option_value {
  QUARTET_OPTION_FUSION = 1,
  QUARTET_OPTION_THREADS = 2,
  QUARTET_OPTION_VERIFY_STAGES = 3,
  QUARTET_OPTION_ISA = 4,
  QUARTET_OPTION_FLUSH_DENORMALS = 5,
  QUARTET_OPTION_CACHE_MODE = 6,
  QUARTET_OPTION_TUNE = 7,
  QUARTET_OPTION_DIM_HINT = 8,
  QUARTET_OPTION_INITIALIZER_INPUTS = 9
};

enum quartet_attr_kind_value {
  QUARTET_ATTR_I64 = 1,   /* data: one int64_t; count 1; booleans are 0 or 1 */
  QUARTET_ATTR_F64 = 2,   /* data: one double; count 1 */
  QUARTET_ATTR_TEXT = 3,  /* data: UTF-8; count its bytes, or SIZE_MAX for NUL-terminated */
  QUARTET_ATTR_I64S = 4,  /* data: int64_t[count] */
  QUARTET_ATTR_F64S = 5,  /* data: double[count] */
  QUARTET_ATTR_DTYPE = 6, /* data: one int32_t, a QUARTET_DTYPE_*; count 1 */
  QUARTET_ATTR_DIMS =
      7, /* data: int64_t[count], each an extent (>= 0) or a number from quartet_builder_dim_symbol or _dim_text */
  QUARTET_ATTR_REGION = 8 /* data: one int32_t, a region from quartet_builder_region_begin that has ended; count 1 */
};

enum quartet_constant_flag_value {
  QUARTET_CONSTANT_COPY = 0,  /* the bytes are copied before the call returns */
  QUARTET_CONSTANT_BORROW = 1 /* the bytes stay where they are, unchanged, until free_data is called */
};

enum quartet_tensor_info_flag_value {
  QUARTET_TENSOR_OPTIONAL = 1 /* an input with a default value: it may be left out when running */
};

enum quartet_tensor_flag_value {
  QUARTET_TENSOR_STRIDED = 1 /* `strides` holds; without it the tensor is dense, last dim fastest */
};

enum quartet_origin_value {
  QUARTET_ORIGIN_COMPILED = 1, /* made by this compile */
  QUARTET_ORIGIN_MEMORY = 2,   /* remembered in this context */
  QUARTET_ORIGIN_DISK = 3,     /* read from the cache on disk */
  QUARTET_ORIGIN_BYTES = 4     /* quartet_program_load */
};

enum quartet_load_flag_value {
  QUARTET_LOAD_TRUSTED = 1 /* the caller vouches for the bytes: they contain machine code that will be executed */
};

enum quartet_map_mode_value { QUARTET_MAP_READ = 1, QUARTET_MAP_WRITE = 2 };

enum quartet_done_mode_value {
  QUARTET_DONE_ON_POLL = 0, /* called inside quartet_context_poll only, on the polling thread */
  QUARTET_DONE_ANY_THREAD =
      1 /* called at once, on whichever thread finished the work; may be inside the registering call */
};

/* ==================================================================================================== handles ======
 */

typedef struct quartet_error quartet_error;     /* immutable, shared */
typedef struct quartet_blob quartet_blob;       /* immutable bytes, one owner */
typedef struct quartet_options quartet_options; /* exclusive, one owner */
typedef struct quartet_context quartet_context; /* shared */
typedef struct quartet_device quartet_device;   /* borrowed from its context */
typedef struct quartet_builder quartet_builder; /* exclusive, one owner */
typedef struct quartet_graph quartet_graph;     /* immutable, shared */
typedef struct quartet_program quartet_program; /* immutable, shared */
typedef struct quartet_buffer quartet_buffer;   /* shared; its contents are the caller's to order */
typedef struct quartet_binding quartet_binding; /* exclusive, one owner */
typedef struct quartet_future quartet_future;   /* shared */

/* ================================================================================================== callbacks ======
 */

/* Frees user data that came with a callback. */
typedef void(QUARTET_CALL* quartet_free_fn)(void* user);

/* Frees memory lent with quartet_builder_constant or quartet_buffer_wrap. */
typedef void(QUARTET_CALL* quartet_free_data_fn)(void* user, void* data, size_t size);

/* Memory aligned to `align` (a power of two), or NULL. Any thread. */
typedef void*(QUARTET_CALL* quartet_alloc_fn)(void* user, size_t size, size_t align);

/* Frees what quartet_alloc_fn gave, with the size and alignment it was asked for. Any thread. */
typedef void(QUARTET_CALL* quartet_dealloc_fn)(void* user, void* memory, size_t size, size_t align);

/* One message; component and message are NUL-terminated and valid during the call. Any thread, never from a kernel.
 * Must not call back into Quartet. */
typedef void(QUARTET_CALL* quartet_log_fn)(void* user, int32_t level, const char* component, size_t component_size,
                                           const char* message, size_t message_size);

/* A task to run once. */
typedef void(QUARTET_CALL* quartet_task_fn)(void* arg);

/* Takes a task to be run once, later or now, on any thread, in any order; a greater priority is more urgent. Returns
 * QUARTET_OK when taken, anything else when not, and then does not run it. */
typedef int32_t(QUARTET_CALL* quartet_submit_fn)(void* user, quartet_task_fn task, void* arg, int32_t priority);

/* How many tasks can run at the same time; at least 1. */
typedef int32_t(QUARTET_CALL* quartet_concurrency_fn)(void* user);

/* A future has finished. Called exactly once; the future is valid during the call. */
typedef void(QUARTET_CALL* quartet_done_fn)(void* user, quartet_future* future);

/* ==================================================================================================== structs ======
 */

/* Where a context's host memory comes from: handles, graphs, buffers, workspaces, programs, results. Not covered: what
 * a compile and the cache's background thread use while they work, SQLite, thread stacks, what the system's loader
 * uses. */
typedef struct quartet_allocator {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user;
  quartet_alloc_fn alloc;
  quartet_dealloc_fn dealloc;
  quartet_free_fn free_user; /* or NULL; after the last dealloc */
} quartet_allocator;

typedef struct quartet_logger {
  uint32_t struct_size;
  int32_t level; /* QUARTET_LOG_*: the most detailed level to report */
  void* user;
  quartet_log_fn log;
  quartet_free_fn free_user; /* or NULL; after the last message */
} quartet_logger;

/* The host's job system. Tasks may be run late, in any order, all from one thread, or dropped when the host shuts down:
 * whoever waits for a task that has not been started gets it done without the host. Compile tasks need deep stacks:
 * they are given to the host only when stack_bytes is at least 8 MiB. */
typedef struct quartet_executor {
  uint32_t struct_size;
  uint32_t flags; /* 0 */
  void* user;
  quartet_submit_fn submit;
  quartet_concurrency_fn concurrency;
  quartet_free_fn free_user; /* or NULL; when no task submitted can reach the context any more */
  uint64_t stack_bytes;      /* stack of the threads that run tasks; 0: not known, taken as small */
} quartet_executor;

typedef struct quartet_cache_desc {
  uint32_t struct_size;
  int32_t mode;          /* QUARTET_CACHE_* */
  const char* path;      /* a directory, made with mode 0700 if missing; only with a disk mode */
  size_t path_size;      /* SIZE_MAX: NUL-terminated */
  uint64_t max_bytes;    /* size of the database; 0: 512 MiB */
  uint64_t memory_bytes; /* artifacts kept in memory; 0: 64 MiB */
} quartet_cache_desc;

typedef struct quartet_context_desc {
  uint32_t struct_size;
  uint32_t flags;                     /* 0 */
  const quartet_allocator* allocator; /* NULL: the C library's. Pointed-to structs are copied. */
  const quartet_logger* logger;       /* NULL: silent */
  const quartet_executor* executor;   /* NULL: private threads */
  const quartet_cache_desc* cache;    /* NULL: QUARTET_CACHE_MEMORY */
  uint64_t budget_bytes;              /* most host memory held at once by what the allocator covers; 0: no limit */
  const char* compiler_path;          /* the file libquartet_llvm.so; NULL: beside this library */
  size_t compiler_path_size;          /* SIZE_MAX: NUL-terminated */
} quartet_context_desc;

typedef struct quartet_memory_usage {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t live_bytes; /* held now */
  uint64_t peak_bytes; /* most ever held */
  uint64_t budget_bytes;
  uint64_t live_blocks;  /* allocations not yet freed */
  uint64_t total_blocks; /* allocations ever made */
} quartet_memory_usage;

typedef struct quartet_option_info {
  uint32_t struct_size;
  int32_t id;           /* QUARTET_OPTION_* */
  int32_t type;         /* QUARTET_OPTION_BOOL, _INTEGER or _CHOICE */
  int32_t affects_code; /* 1: part of the cache key */
  int32_t affects_load; /* 1: changes how a program is loaded or placed, not its code */
  int32_t reserved;
  const char* name; /* strings are static */
  const char* doc;
  const char* choices; /* comma-separated, for QUARTET_OPTION_CHOICE; else "" */
  int64_t default_value;
  int64_t least; /* allowed range, inclusive */
  int64_t most;
} quartet_option_info;

typedef struct quartet_device_info {
  uint32_t struct_size;
  int32_t kind;            /* QUARTET_DEVICE_* */
  const char* name;        /* "cpu:host"; strings live as long as the context */
  const char* description; /* the processor's family, such as "zen4", or "generic" */
  const char* isa;         /* instruction-set class: "sse2", "avx2", "avx512" */
  int32_t cores;           /* physical cores this process may use */
  int32_t threads;         /* hardware threads this process may use */
  int32_t vector_bytes;    /* widest vector of the class */
  int32_t reserved;
  uint64_t l1_bytes; /* data cache of one core */
  uint64_t l2_bytes; /* of one core */
  uint64_t l3_bytes; /* shared; 0: none */
  uint64_t memory_bytes;
} quartet_device_info;

/* The type of a graph's value, input or output. Pointers are borrowed from the object asked (from a builder: until its
 * next call). dims has `rank` entries, QUARTET_DIM_UNKNOWN where the extent is not a number; dim_texts has `rank`
 * NUL-terminated texts: a decimal number, or an expression over symbols such as "N" or "N*2 + 1", or "?" for one born
 * while running. */
typedef struct quartet_tensor_info {
  uint32_t struct_size;
  int32_t dtype; /* QUARTET_DTYPE_* */
  int32_t rank;
  uint32_t flags;   /* QUARTET_TENSOR_OPTIONAL */
  const char* name; /* "" if it has none */
  size_t name_size;
  const int64_t* dims;
  const char* const* dim_texts;
} quartet_tensor_info;

typedef struct quartet_op_info {
  uint32_t struct_size;
  int32_t id; /* for quartet_builder_op_by_id; stable */
  int32_t min_inputs;
  int32_t max_inputs; /* -1: any number */
  int32_t outputs;    /* -1: depends on the regions or the function called */
  int32_t regions;    /* attributes of kind QUARTET_ATTR_REGION it takes */
  const char* name;   /* strings are static */
  const char* doc;
} quartet_op_info;

typedef struct quartet_attr {
  uint32_t struct_size;
  int32_t kind; /* QUARTET_ATTR_* */
  const char* name;
  size_t name_size; /* SIZE_MAX: NUL-terminated */
  const void* data;
  size_t count;
} quartet_attr;

typedef struct quartet_program_info {
  uint32_t struct_size;
  int32_t origin;           /* QUARTET_ORIGIN_* */
  uint32_t kernels;         /* distinct pieces of machine code */
  uint32_t stages;          /* steps of the program */
  uint64_t code_bytes;      /* machine code */
  uint64_t constant_bytes;  /* weights and tables held by the program, packed copies included */
  uint64_t workspace_bytes; /* memory one run needs besides inputs and outputs; 0 if that depends on dims: see
                               quartet_binding_workspace_size */
  uint64_t compile_ns;      /* time of the compile that made the code, wherever that happened */
  uint64_t load_ns;         /* time from the look-up or the bytes to a program ready to run, in this context */
  double library_share; /* share of the predicted run time in kernels of the built-in library (sort, scatter ...), 0 to
                           1 */
} quartet_program_info;

typedef struct quartet_buffer_info {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t bytes;
  void* host; /* address on a CPU device; NULL elsewhere */
  const quartet_device* device;
} quartet_buffer_info;

/* A tensor in memory. `buffer` wins over `data` when both are set. See the top of this file for outputs. */
typedef struct quartet_tensor {
  uint32_t struct_size;
  int32_t dtype;                     /* QUARTET_DTYPE_*; an output may say QUARTET_DTYPE_INVALID and is filled in */
  int32_t rank;                      /* 0 to QUARTET_MAX_RANK */
  uint32_t flags;                    /* QUARTET_TENSOR_STRIDED */
  void* data;                        /* host memory, or NULL */
  quartet_buffer* buffer;            /* or NULL */
  uint64_t offset;                   /* bytes from `data` or from the buffer's start to element 0 */
  uint64_t bytes;                    /* bytes that may be used from there on; with a buffer 0: up to its end */
  int64_t dims[QUARTET_MAX_RANK];    /* the first `rank` count */
  int64_t strides[QUARTET_MAX_RANK]; /* in elements, with QUARTET_TENSOR_STRIDED */
} quartet_tensor;

typedef struct quartet_cache_stats {
  uint32_t struct_size;
  int32_t mode; /* QUARTET_CACHE_* in effect; MEMORY when the directory could not be used */
  uint64_t lookups;
  uint64_t hits_memory;
  uint64_t hits_disk;
  uint64_t misses;         /* all of them, of which: */
  uint64_t misses_corrupt; /* stored bytes failed their checks and were dropped */
  uint64_t misses_key;     /* same digest, different key */
  uint64_t puts;
  uint64_t puts_dropped; /* queue full, or the database refused */
  uint64_t evictions;
  uint64_t entries;  /* on disk */
  uint64_t bytes;    /* of their payloads */
  uint64_t saved_ns; /* compile time not spent thanks to hits */
} quartet_cache_stats;

/* ==================================================================================================== library ======
 */

/* (major << 16) | minor of the interface the loaded library implements.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_abi_version(void);

/* The library's version, e.g. "1.0.0". `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return library
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_version_string(size_t* size);

/* How this library was built, as a JSON object: version, abi, compiler_id, features.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_blob_release
 * errors: invalid_argument, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_build_info(quartet_blob** out, quartet_error** error);

/* 1 when this build has QUARTET_FEATURE_* `feature`, else 0.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int32_t QUARTET_CALL quartet_has_feature(int32_t feature);

/* Lower-case name of a status, e.g. "invalid_argument"; "unknown" for other numbers. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return library
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_status_name(int32_t status, size_t* size);

/* Name of an element type, e.g. "f32", "bool"; "invalid" for other numbers. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return library
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_dtype_name(int32_t dtype, size_t* size);

/* The element type of a name, or QUARTET_DTYPE_INVALID.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int32_t QUARTET_CALL quartet_dtype_find(const char* name, size_t name_size);

/* Bytes of one element; 0 for other numbers.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API size_t QUARTET_CALL quartet_dtype_size(int32_t dtype);

/* ===================================================================================================== errors ======
 */

/* The status the failed call returned; QUARTET_OK for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int32_t QUARTET_CALL quartet_error_code(const quartet_error* error);

/* One sentence for a person that names the thing, the value and the reason; "" for NULL. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return error
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_error_message(const quartet_error* error, size_t* size);

/* The stage that failed, e.g. "import", "codegen"; "" when it belongs to none. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return error
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_error_stage(const quartet_error* error, size_t* size);

/* The graph's op the error is about, or -1.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int64_t QUARTET_CALL quartet_error_node(const quartet_error* error);

/* How many texts (compiler logs, diagnostics) are attached.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_error_attachment_count(const quartet_error* error);

/* Name of an attachment; NULL when there is none of that index. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return error
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_error_attachment_name(const quartet_error* error, uint32_t index,
                                                                   size_t* size);

/* Text of an attachment; NULL when there is none of that index. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return error
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_error_attachment_text(const quartet_error* error, uint32_t index,
                                                                   size_t* size);

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_error_retain(quartet_error* error);

/* One reference less. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_error_release(quartet_error* error);

/* ====================================================================================================== blobs ======
 */

/* The bytes of a blob, followed by a NUL that is not counted; NULL for NULL. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return blob
 * errors: none */
QUARTET_API const void* QUARTET_CALL quartet_blob_data(const quartet_blob* blob, size_t* size);

/* Frees a blob. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_blob_release(quartet_blob* blob);

/* ==================================================================================================== options ======
 */

/* Options with every value at its default.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_options_destroy
 * errors: invalid_argument, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_options_create(quartet_options** out, quartet_error** error);

/* Frees options. NULL is ignored. Compiles in progress have their own copy.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_options_destroy(quartet_options* options);

/* Sets an option by its number. For a bool 0 or 1, for a choice the word's index.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_options_set_i64(quartet_options* options, int32_t id, int64_t value,
                                                         quartet_error** error);

/* Sets an option by its number from text: "on", "off", a decimal number, or a choice's word.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_options_set_text(quartet_options* options, int32_t id, const char* value,
                                                          size_t value_size, quartet_error** error);

/* Sets an option by its name from text, as quartet_options_set_text.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_options_set_named(quartet_options* options, const char* name, size_t name_size,
                                                           const char* value, size_t value_size, quartet_error** error);

/* The value of an option as a number.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_options_get_i64(const quartet_options* options, int32_t id, int64_t* out,
                                                         quartet_error** error);

/* Sixteen bytes that are equal for options that lead to the same code: they cover every option that affects it.
 * since: 1.0
 * thread: exclusive:options
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument */
QUARTET_API int32_t QUARTET_CALL quartet_options_digest(const quartet_options* options, uint8_t* out16,
                                                        quartet_error** error);

/* How many options there are.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_option_count(void);

/* Describes the option at an index below quartet_option_count().
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_option_describe(uint32_t index, quartet_option_info* out,
                                                         quartet_error** error);

/* ==================================================================================================== context ======
 */

/* A context: allocator, logger, executor, cache and devices of one user of the library. `desc` may be NULL. A cache
 * directory that cannot be used is not an error: the context then remembers in memory, and logs why.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger, free
 * owns: new out quartet_context_release, keep desc
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted */
QUARTET_API int32_t QUARTET_CALL quartet_context_create(const quartet_context_desc* desc, quartet_context** out,
                                                        quartet_error** error);

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_context_retain(quartet_context* context);

/* One reference less. NULL is ignored. With the last reference, and with the last object made from the context, its
 * threads end and its cache closes; compiles in progress are cancelled, and callbacks still queued are called.
 * since: 1.0
 * thread: any
 * blocks: wait
 * calls-back: logger, done, free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_context_release(quartet_context* context);

/* Runs callbacks queued with QUARTET_DONE_ON_POLL, at least one if there is one, until none is left or budget_ns
 * nanoseconds have passed (negative: no limit). `out_run`, nullable, gets how many ran.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: done, free
 * owns: none
 * errors: invalid_argument, forked */
QUARTET_API int32_t QUARTET_CALL quartet_context_poll(quartet_context* context, int64_t budget_ns, uint32_t* out_run,
                                                      quartet_error** error);

/* Waits until no compile of this context is in progress, at most timeout_ns nanoseconds (negative: forever).
 * since: 1.0
 * thread: any
 * blocks: wait
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, timeout, forked */
QUARTET_API int32_t QUARTET_CALL quartet_context_wait_idle(quartet_context* context, int64_t timeout_ns,
                                                           quartet_error** error);

/* A file descriptor that is readable while quartet_context_poll has a callback to run. Only to be waited on (poll,
 * epoll), never to be read, written or closed; valid as long as the context.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, io, unsupported, forked */
QUARTET_API int32_t QUARTET_CALL quartet_context_event_handle(quartet_context* context, int64_t* out,
                                                              quartet_error** error);

/* The host memory the context and its objects hold.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_context_memory_usage(const quartet_context* context, quartet_memory_usage* out,
                                                              quartet_error** error);

/* Gives back memory kept for later runs: workspaces of programs in use, and what has grown in their runs.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, forked */
QUARTET_API int32_t QUARTET_CALL quartet_context_trim(quartet_context* context, quartet_error** error);

/* Changes the most detailed level the logger is given.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_context_set_log_level(quartet_context* context, int32_t level,
                                                               quartet_error** error);

/* ==================================================================================================== devices ======
 */

/* How many devices the context sees; the first is the host's CPU. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_device_count(const quartet_context* context);

/* The device at an index.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out context
 * errors: invalid_argument, not_found */
QUARTET_API int32_t QUARTET_CALL quartet_device_get(const quartet_context* context, uint32_t index,
                                                    const quartet_device** out, quartet_error** error);

/* The device of a name such as "cpu:host" ("cpu" for short).
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out context
 * errors: invalid_argument, not_found */
QUARTET_API int32_t QUARTET_CALL quartet_device_find(const quartet_context* context, const char* name, size_t name_size,
                                                     const quartet_device** out, quartet_error** error);

/* Describes a device.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_device_get_info(const quartet_device* device, quartet_device_info* out,
                                                         quartet_error** error);

/* The canonical text of the device as a target, as it enters cache keys.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_blob_release
 * errors: invalid_argument, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_device_target(const quartet_device* device, quartet_blob** out,
                                                       quartet_error** error);

/* ======================================================================================================== ops ======
 */

/* How many ops a graph can be built from.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_op_count(void);

/* Describes the op at an index below quartet_op_count().
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_op_describe(uint32_t index, quartet_op_info* out, quartet_error** error);

/* The number of the op of a name, or -1.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int32_t QUARTET_CALL quartet_op_find(const char* name, size_t name_size);

/* ==================================================================================================== builder ======
 */

/* A builder for one graph. Values are small numbers that mean something inside this builder only. A call that fails
 * leaves the builder as it was, except that one that runs out of memory spends it.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_builder_destroy
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_builder_create(quartet_context* context, quartet_builder** out,
                                                        quartet_error** error);

/* Frees a builder, spent or not. NULL is ignored.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_builder_destroy(quartet_builder* builder);

/* A dim known when a run begins: the symbol of that name. out_dim is a negative number to put into dims arrays of this
 * builder; the same name gives the same number.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_dim_symbol(quartet_builder* builder, const char* name,
                                                            size_t name_size, int64_t* out_dim, quartet_error** error);

/* A dim computed from symbols, as an expression such as "2*N + 1" or "floor_div(N, 4)" over names that
 * quartet_builder_dim_symbol was called with. out_dim is a number for dims arrays of this builder: an extent if the
 * expression is one, else negative.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_dim_text(quartet_builder* builder, const char* text, size_t text_size,
                                                          int64_t* out_dim, quartet_error** error);

/* An input of the graph. dims[i] is an extent (>= 0) or a number from quartet_builder_dim_symbol or
 * quartet_builder_dim_text. Names are unique.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_input(quartet_builder* builder, const char* name, size_t name_size,
                                                       int32_t dtype, int32_t rank, const int64_t* dims,
                                                       int32_t* out_value, quartet_error** error);

/* What an input is when a run leaves it out: the value of a constant of this builder, of the input's element type, rank
 * and, where its dims are extents, dims. Elsewhere the constant's extents count.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_input_default(quartet_builder* builder, int32_t input,
                                                               int32_t constant, quartet_error** error);

/* A constant of `bytes` bytes, dense, last dim fastest. With QUARTET_CONSTANT_BORROW the memory is used in place until
 * free_data (nullable) is called, once the last graph and program that use it are gone; with QUARTET_CONSTANT_COPY
 * free_data, if any, is called before this returns.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: free
 * owns: keep user
 * errors: invalid_argument, unsupported, failed_precondition, out_of_memory, resource_exhausted */
QUARTET_API int32_t QUARTET_CALL quartet_builder_constant(quartet_builder* builder, int32_t dtype, int32_t rank,
                                                          const int64_t* dims, const void* data, size_t bytes,
                                                          uint32_t flags, quartet_free_data_fn free_data, void* user,
                                                          int32_t* out_value, quartet_error** error);

/* An op by name: checks operands and attributes, infers the results' types, stores their values in
 * outputs[0..output_count), which may be the same array as inputs. output_count is the number of results the op has.
 * QUARTET_NO_VALUE stands for an operand left out. Control flow: "if" takes regions "then" and "else", "loop" a region
 * "body", "call" the text attribute "function"; a region is given as an attribute of kind QUARTET_ATTR_REGION.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported, not_found, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_op(quartet_builder* builder, const char* op, size_t op_size,
                                                    const int32_t* inputs, uint32_t input_count,
                                                    const quartet_attr* attrs, uint32_t attr_count, int32_t* outputs,
                                                    uint32_t output_count, quartet_error** error);

/* An op by number, as quartet_builder_op.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_op_by_id(quartet_builder* builder, int32_t op, const int32_t* inputs,
                                                          uint32_t input_count, const quartet_attr* attrs,
                                                          uint32_t attr_count, int32_t* outputs, uint32_t output_count,
                                                          quartet_error** error);

/* The type and name of a value.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: borrow out builder
 * errors: invalid_argument, unsupported, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_value_info(quartet_builder* builder, int32_t value,
                                                            quartet_tensor_info* out, quartet_error** error);

/* Gives a value a name for texts and messages.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_set_name(quartet_builder* builder, int32_t value, const char* name,
                                                          size_t name_size, quartet_error** error);

/* Makes a value the graph's next output, under a name.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_output(quartet_builder* builder, int32_t value, const char* name,
                                                        size_t name_size, quartet_error** error);

/* Opens a region inside what is being built: until its end, ops go into it. Its ops may use values of the regions
 * around it.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_region_begin(quartet_builder* builder, int32_t* out_region,
                                                              quartet_error** error);

/* Adds a parameter to the innermost open region or function.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_region_parameter(quartet_builder* builder, int32_t dtype, int32_t rank,
                                                                  const int64_t* dims, int32_t* out_value,
                                                                  quartet_error** error);

/* Closes the innermost open region; `results` are the values it yields.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_region_end(quartet_builder* builder, const int32_t* results,
                                                            uint32_t result_count, quartet_error** error);

/* Opens a function of that name, to be called with the op "call"; its body sees its parameters only, which
 * quartet_builder_region_parameter adds.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_function_begin(quartet_builder* builder, const char* name,
                                                                size_t name_size, quartet_error** error);

/* Declares the type of the open function's next result, needed before a call of it inside its own body.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_function_result(quartet_builder* builder, int32_t dtype, int32_t rank,
                                                                 const int64_t* dims, quartet_error** error);

/* Closes the open function; `results` are the values it returns.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_builder_function_end(quartet_builder* builder, const int32_t* results,
                                                              uint32_t result_count, quartet_error** error);

/* Verifies what was built and makes it a graph. The builder is spent, whether this succeeds or not: all that may
 * follow is quartet_builder_destroy.
 * since: 1.0
 * thread: exclusive:builder
 * blocks: no
 * calls-back: free
 * owns: new out quartet_graph_release
 * errors: invalid_argument, failed_precondition, out_of_memory, resource_exhausted */
QUARTET_API int32_t QUARTET_CALL quartet_builder_finish(quartet_builder* builder, quartet_graph** out,
                                                        quartet_error** error);

/* ====================================================================================================== graph ======
 */

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_graph_retain(quartet_graph* graph);

/* One reference less. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_graph_release(quartet_graph* graph);

/* Sixteen bytes that identify what the graph computes; names do not count.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument */
QUARTET_API int32_t QUARTET_CALL quartet_graph_digest(const quartet_graph* graph, uint8_t* out16,
                                                      quartet_error** error);

/* How many inputs. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_graph_input_count(const quartet_graph* graph);

/* How many outputs. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_graph_output_count(const quartet_graph* graph);

/* Name and type of an input.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out graph
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_graph_input_info(const quartet_graph* graph, uint32_t index,
                                                          quartet_tensor_info* out, quartet_error** error);

/* Name and type of an output.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out graph
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_graph_output_info(const quartet_graph* graph, uint32_t index,
                                                           quartet_tensor_info* out, quartet_error** error);

/* How many dim symbols the inputs bind. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_graph_symbol_count(const quartet_graph* graph);

/* Name of a dim symbol; NULL when there is none of that index. `size` may be NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow return graph
 * errors: none */
QUARTET_API const char* QUARTET_CALL quartet_graph_symbol_name(const quartet_graph* graph, uint32_t index,
                                                               size_t* size);

/* The graph as bytes for quartet_graph_deserialize, constants and names included.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_blob_release
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_serialize(const quartet_graph* graph, quartet_blob** out,
                                                         quartet_error** error);

/* The graph of such bytes, which may come from anywhere: they are checked in full.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_graph_release
 * errors: invalid_argument, corrupt, unsupported, version_mismatch, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_deserialize(quartet_context* context, const void* bytes, size_t size,
                                                           quartet_graph** out, quartet_error** error);

/* The graph as text for people and for quartet_graph_parse.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_blob_release
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_print(const quartet_graph* graph, quartet_blob** out,
                                                     quartet_error** error);

/* The graph of a text.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_graph_release
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_parse(quartet_context* context, const char* text, size_t text_size,
                                                     quartet_graph** out, quartet_error** error);

/* The graph of an ONNX model in memory, which may come from anywhere. Constants in external files are refused: use
 * quartet_graph_import_onnx_file. One error lists every node that is not supported. `options` may be NULL: an
 * initializer that the model lists as an input too is then a constant; with QUARTET_OPTION_INITIALIZER_INPUTS it is an
 * optional input.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: logger
 * owns: new out quartet_graph_release
 * errors: invalid_argument, corrupt, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_import_onnx(quartet_context* context, const void* bytes, size_t size,
                                                           const quartet_options* options, quartet_graph** out,
                                                           quartet_error** error);

/* The graph of an ONNX file; constants in external files are read from its directory, never from outside it. `options`
 * as for quartet_graph_import_onnx.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: new out quartet_graph_release
 * errors: invalid_argument, not_found, io, corrupt, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_graph_import_onnx_file(quartet_context* context, const char* path,
                                                                size_t path_size, const quartet_options* options,
                                                                quartet_graph** out, quartet_error** error);

/* ==================================================================================================== compile ======
 */

/* The program of a graph: remembered, or compiled now on a thread of the library's own. `device` NULL: the first one.
 * `options` NULL: defaults. Equal requests at the same time compile once.
 * since: 1.0
 * thread: any
 * blocks: compile
 * calls-back: logger, executor
 * owns: new out quartet_program_release
 * errors: invalid_argument, unsupported, compiler, not_found, version_mismatch, out_of_memory, resource_exhausted,
 * forked */
QUARTET_API int32_t QUARTET_CALL quartet_compile(quartet_context* context, const quartet_graph* graph,
                                                 const quartet_device* device, const quartet_options* options,
                                                 quartet_program** out, quartet_error** error);

/* The same as a future, for quartet_future_take_program.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: executor
 * owns: new out quartet_future_release
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_compile_async(quartet_context* context, const quartet_graph* graph,
                                                       const quartet_device* device, const quartet_options* options,
                                                       quartet_future** out, quartet_error** error);

/* The sixteen bytes under which the cache keeps the program of such a request. `out_explain`, nullable, gets a JSON
 * object with the digest of each part of the key.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out_explain quartet_blob_release
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_compile_key(quartet_context* context, const quartet_graph* graph,
                                                     const quartet_device* device, const quartet_options* options,
                                                     uint8_t* out16, quartet_blob** out_explain, quartet_error** error);

/* ==================================================================================================== futures ======
 */

/* 1 when finished (done, failed or cancelled), else 0; 1 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API int32_t QUARTET_CALL quartet_future_poll(const quartet_future* future);

/* Waits until finished, at most timeout_ns nanoseconds (negative: forever). QUARTET_OK says finished, not successful.
 * since: 1.0
 * thread: any
 * blocks: wait
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, timeout, forked */
QUARTET_API int32_t QUARTET_CALL quartet_future_wait(quartet_future* future, int64_t timeout_ns, quartet_error** error);

/* Waits until one of `count` futures of one context is finished, and says which (the lowest index).
 * since: 1.0
 * thread: any
 * blocks: wait
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, timeout, forked */
QUARTET_API int32_t QUARTET_CALL quartet_future_wait_any(quartet_future* const* futures, uint32_t count,
                                                         int64_t timeout_ns, uint32_t* out_index,
                                                         quartet_error** error);

/* Asks to stop. Before the work has begun it never begins; after, it stops at the next stage. A future that finishes
 * this way fails with QUARTET_E_CANCELLED. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: done, free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_future_cancel(quartet_future* future);

/* The program of a finished compile, one more reference to it at each call; or the failure of the compile, as
 * quartet_compile would have returned it. QUARTET_E_FAILED_PRECONDITION while not finished.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_program_release
 * errors: invalid_argument, failed_precondition, unsupported, compiler, cancelled, not_found, version_mismatch,
 * out_of_memory, resource_exhausted */
QUARTET_API int32_t QUARTET_CALL quartet_future_take_program(quartet_future* future, quartet_program** out,
                                                             quartet_error** error);

/* The failure of a finished future as an owned error, NULL when it succeeded or is not finished.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new return quartet_error_release
 * errors: none */
QUARTET_API quartet_error* QUARTET_CALL quartet_future_take_error(quartet_future* future);

/* Has `done` called exactly once when the future finishes, in every case, cancelled ones included. A future may have
 * several. Releasing the future does not take the callback back.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: done, free
 * owns: keep user
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_future_on_done(quartet_future* future, quartet_done_fn done, void* user,
                                                        quartet_free_fn free_user, int32_t mode, quartet_error** error);

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_future_retain(quartet_future* future);

/* One reference less. NULL is ignored. Does not cancel.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_future_release(quartet_future* future);

/* ==================================================================================================== program ======
 */

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_program_retain(quartet_program* program);

/* One reference less. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_program_release(quartet_program* program);

/* Sizes, times and where the program came from.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_program_get_info(const quartet_program* program, quartet_program_info* out,
                                                          quartet_error** error);

/* How many inputs. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_program_input_count(const quartet_program* program);

/* How many outputs. 0 for NULL.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API uint32_t QUARTET_CALL quartet_program_output_count(const quartet_program* program);

/* Name and type of an input.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out program
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_program_input_info(const quartet_program* program, uint32_t index,
                                                            quartet_tensor_info* out, quartet_error** error);

/* Name and type of an output.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out program
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_program_output_info(const quartet_program* program, uint32_t index,
                                                             quartet_tensor_info* out, quartet_error** error);

/* Fills dtype, rank, dims and bytes (of the dense tensor) of the outputs from the inputs' dtype, rank and dims; inputs
 * need no memory. An output with a dim born while running gets an upper bound there; if there is none, the dim is -1
 * and bytes is 0: leave such an output's memory to the run, or give as much as may be needed.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported, out_of_memory */
QUARTET_API int32_t QUARTET_CALL quartet_program_output_shapes(const quartet_program* program,
                                                               const quartet_tensor* inputs, uint32_t input_count,
                                                               quartet_tensor* outputs, uint32_t output_count,
                                                               quartet_error** error);

/* The text of a stage of the program's compile: "graph", "simplified", "ground", "tiles", "groups", "program",
 * "kernel", "llvm" or "asm". A program from bytes has "program" only.
 * since: 1.0
 * thread: any
 * blocks: compile
 * calls-back: logger
 * owns: new out quartet_blob_release
 * errors: invalid_argument, not_found, unsupported, compiler, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_program_dump(const quartet_program* program, const char* stage,
                                                      size_t stage_size, quartet_blob** out, quartet_error** error);

/* The program as bytes for quartet_program_load, constants included.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_blob_release
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_program_serialize(const quartet_program* program, quartet_blob** out,
                                                           quartet_error** error);

/* The program of such bytes. They are checked for damage, but they contain machine code: loading them is as strong as
 * loading a shared library, so `flags` must have QUARTET_LOAD_TRUSTED. `device` NULL: the first one. `options` NULL:
 * defaults.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: new out quartet_program_release
 * errors: invalid_argument, corrupt, unsupported, version_mismatch, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_program_load(quartet_context* context, const void* bytes, size_t size,
                                                      const quartet_device* device, const quartet_options* options,
                                                      uint32_t flags, quartet_program** out, quartet_error** error);

/* ===================================================================================================== memory ======
 */

/* Memory on a device (NULL: the first one), of undefined contents. `align` a power of two, 0: the device's best.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_buffer_release
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_buffer_alloc(quartet_context* context, const quartet_device* device,
                                                      uint64_t bytes, uint64_t align, uint32_t flags,
                                                      quartet_buffer** out, quartet_error** error);

/* The caller's memory as a buffer. free_data (nullable) is called once nothing uses it any more.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: free
 * owns: new out quartet_buffer_release, keep user
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_buffer_wrap(quartet_context* context, const quartet_device* device, void* data,
                                                     uint64_t bytes, quartet_free_data_fn free_data, void* user,
                                                     quartet_buffer** out, quartet_error** error);

/* One more reference. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_buffer_retain(quartet_buffer* buffer);

/* One reference less. NULL is ignored.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_buffer_release(quartet_buffer* buffer);

/* Makes bytes [offset, offset + bytes) readable or writable (QUARTET_MAP_* bits) at a host address until
 * quartet_buffer_unmap. bytes UINT64_MAX: to the end.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: borrow out buffer
 * errors: invalid_argument, unsupported, forked */
QUARTET_API int32_t QUARTET_CALL quartet_buffer_map(quartet_buffer* buffer, uint64_t offset, uint64_t bytes,
                                                    uint32_t mode, void** out, quartet_error** error);

/* Ends a mapping: what was written is visible to the device.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, forked */
QUARTET_API int32_t QUARTET_CALL quartet_buffer_unmap(quartet_buffer* buffer, quartet_error** error);

/* Size, device and host address.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported */
QUARTET_API int32_t QUARTET_CALL quartet_buffer_get_info(const quartet_buffer* buffer, quartet_buffer_info* out,
                                                         quartet_error** error);

/* ==================================================================================================== running ======
 */

/* Runs a program once and waits for it. inputs and outputs are in the program's order, all of them. An optional input
 * with neither data nor buffer takes its default. Outputs as said at the top of this file. Inputs and outputs must not
 * overlap.
 * since: 1.0
 * thread: any
 * blocks: run
 * calls-back: executor
 * owns: none
 * errors: invalid_argument, unsupported, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_run_sync(const quartet_program* program, const quartet_tensor* inputs,
                                                  uint32_t input_count, quartet_tensor* outputs, uint32_t output_count,
                                                  quartet_error** error);

/* A binding: a program with its tensors and workspace, for repeated runs.
 * since: 1.0
 * thread: any
 * blocks: no
 * calls-back: none
 * owns: new out quartet_binding_destroy
 * errors: invalid_argument, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_create(const quartet_program* program, quartet_binding** out,
                                                        quartet_error** error);

/* Frees a binding. NULL is ignored.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: none */
QUARTET_API void QUARTET_CALL quartet_binding_destroy(quartet_binding* binding);

/* Binds an input. A buffer is retained; memory behind `data` must stay until another tensor is bound or the binding is
 * destroyed. Its contents are read at each run.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: invalid_argument, unsupported, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_set_input(quartet_binding* binding, uint32_t index,
                                                           const quartet_tensor* tensor, quartet_error** error);

/* Binds an output to memory, as quartet_binding_set_input. An output not bound, or bound to neither data nor buffer,
 * gets memory of the binding's own.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: free
 * owns: none
 * errors: invalid_argument, unsupported, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_set_output(quartet_binding* binding, uint32_t index,
                                                            const quartet_tensor* tensor, quartet_error** error);

/* Lends workspace, at least quartet_binding_workspace_size bytes and aligned to 64, until the binding is destroyed or
 * another is set. NULL: the binding's own again.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_set_workspace(quartet_binding* binding, void* data, uint64_t bytes,
                                                               quartet_error** error);

/* The bytes of workspace a run with the inputs bound now needs, besides what grows with dims that the run alone knows:
 * that memory is the binding's own, from the context's allocator, and kept for the next runs.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_workspace_size(quartet_binding* binding, uint64_t* out,
                                                                quartet_error** error);

/* Checks what is bound and allocates what is missing, so that the following runs allocate nothing. quartet_binding_run
 * does it by itself after a change.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: none
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_prepare(quartet_binding* binding, quartet_error** error);

/* Runs once and waits. Prepared, it allocates nothing and takes no lock.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: run
 * calls-back: executor
 * owns: none
 * errors: invalid_argument, failed_precondition, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_run(quartet_binding* binding, quartet_error** error);

/* The tensor of an output with its actual dims, after quartet_binding_prepare or a run. `buffer` and `data` are
 * borrowed and stay valid until the output is bound anew or the binding is destroyed.
 * since: 1.0
 * thread: exclusive:binding
 * blocks: no
 * calls-back: none
 * owns: borrow out binding
 * errors: invalid_argument, unsupported, failed_precondition, forked */
QUARTET_API int32_t QUARTET_CALL quartet_binding_get_output(quartet_binding* binding, uint32_t index,
                                                            quartet_tensor* out, quartet_error** error);

/* ====================================================================================================== cache ======
 */

/* Counters since the context was made.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: none
 * owns: none
 * errors: invalid_argument, unsupported, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_get_stats(quartet_context* context, quartet_cache_stats* out,
                                                         quartet_error** error);

/* Waits until everything queued is on disk.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, timeout, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_flush(quartet_context* context, quartet_error** error);

/* Evicts the least useful entries until at most `bytes` bytes of payload are left, and shrinks the file.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, failed_precondition, io, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_trim(quartet_context* context, uint64_t bytes, quartet_error** error);

/* Forgets every entry, in memory and on disk. Programs in use stay.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: none
 * errors: invalid_argument, io, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_clear(quartet_context* context, quartet_error** error);

/* Checks every entry on disk, drops the damaged, and reports as a JSON object: checked, damaged, removed,
 * file_sound, file_problem.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: new out quartet_blob_release
 * errors: invalid_argument, failed_precondition, io, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_verify(quartet_context* context, quartet_blob** out,
                                                      quartet_error** error);

/* The entries on disk as a JSON array of objects, the most recently used first: key, kind, bytes, compile_us, hits,
 * created_day, used_hour, target.
 * since: 1.0
 * thread: any
 * blocks: io
 * calls-back: logger
 * owns: new out quartet_blob_release
 * errors: invalid_argument, failed_precondition, io, out_of_memory, resource_exhausted, forked */
QUARTET_API int32_t QUARTET_CALL quartet_cache_list(quartet_context* context, quartet_blob** out,
                                                    quartet_error** error);

#ifdef __cplusplus
}
#endif

#endif
