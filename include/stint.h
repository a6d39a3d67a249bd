/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stint: large language models on one small device.
 *
 * Two handles matter. A stint_model is a loaded checkpoint: immutable, shared by any number of
 * threads and sessions. A stint_session is one conversation with it: its KV cache, its scratch
 * memory and its sampler; it belongs to one thread at a time. Close every session before its model.
 *
 * Conventions
 * - Calls return a stint_status: 0 or a negative code. The text of this thread's last failure is in
 *   stint_error_text(). Out-parameters come last and are untouched on failure.
 * - Options structs begin with `size` (set it to sizeof the struct) and mean their default wherever
 * a field is zero; a NULL pointer to one means all defaults.
 * - Ownership: a callee that *borrows* keeps no pointer after it returns unless it says until when;
 * what a call *returns* is freed with the call it names. Every close accepts NULL.
 * - The library never prints and never ends the process.
 */
#ifndef STINT_H
#define STINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STINT_API __attribute__((visibility("default")))

#define STINT_VERSION "0.1.0"

/* The version of the library that is linked, e.g. "0.1.0". */
STINT_API const char *stint_version(void);

/* ---- Errors */

/* code, value, sentence; values are never renumbered */
#define STINT_STATUS_LIST(X)                                                                       \
    X(OK, 0, "done")                                                                               \
    X(E_ARG, -1, "an argument is out of its range")                                                \
    X(E_NOMEM, -2, "not enough memory")                                                            \
    X(E_IO, -3, "a file could not be read or written")                                             \
    X(E_FORMAT, -4, "a file is damaged or not what it says it is")                                 \
    X(E_UNSUPPORTED, -5, "valid, but not something stint can run")                                 \
    X(E_LIMIT, -6, "a memory or context bound was reached")                                        \
    X(E_DEVICE, -7, "a device failed")                                                             \
    X(E_CANCELED, -8, "canceled")                                                                  \
    X(E_INTERNAL, -9, "a bug in stint")

typedef enum stint_status {
#define X(id, value, sentence) STINT_##id = value,
    STINT_STATUS_LIST(X)
#undef X
} stint_status;

/* One sentence for a code; never NULL. Static. */
STINT_API const char *stint_status_text(stint_status status);

/* This thread's last failure: what went wrong and where, with numbers, and how to fix it. Never
 * NULL; valid until this thread's next failing call. */
STINT_API const char *stint_error_text(void);

/* The same, copied to buf[0, n) and terminated; returns the length it would have had. */
STINT_API size_t stint_error_copy(char *buf, size_t n);

typedef enum stint_log_level {
    STINT_LOG_ERROR = 1,
    STINT_LOG_WARNING = 2,
    STINT_LOG_INFO = 3,
    STINT_LOG_DEBUG = 4
} stint_log_level;

/* Receives messages up to `level`, from any thread, one at a time. NULL, the default, drops them.
 * `context` must live until the callback is replaced. Set it before other calls. */
typedef void stint_log_fn(void *context, stint_log_level level, const char *text);
STINT_API void stint_log_set(stint_log_fn *fn, void *context, stint_log_level level);

/* Progress of long work: `done` of `total` units of `what`. Called on the thread of the call. */
typedef void stint_progress_fn(void *context, const char *what, uint64_t done, uint64_t total);

/* ---- Models */

typedef struct stint_model stint_model;

/* How a model's sessions compute. */
typedef enum stint_exec {
    STINT_EXEC_DEFAULT = 0, /* npu for a package, fast for a quantized GGUF (x86), else float */
    STINT_EXEC_FLOAT = 1,   /* F32 arithmetic over the weights as stored */
    STINT_EXEC_NPU = 2,     /* INT8 linears on the device that acts as the NPU */
    STINT_EXEC_FAST = 3     /* steps in integers over quantized blocks; prompts rounded */
} stint_exec;

/* "float", "npu" or "fast"; "default" for anything else. Static. */
STINT_API const char *stint_exec_name(stint_exec exec);

typedef struct stint_model_options {
    size_t size;
    stint_progress_fn *progress; /* default NULL: none */
    void *progress_context;
    bool no_tokenizer; /* skip the vocabulary; only token ids can be used then */
    stint_exec exec;   /* E_UNSUPPORTED if the file has no weights for it */
    /* Large weights are neither loaded nor checked when the model is opened: its sessions read them
     * on demand, and must have a memory bound. Without effect on a model preset. */
    bool lazy;
    /* For a model preset in INT8: also random nested weights of 2 to 7 bits; default none. */
    uint32_t nested_low, nested_high;
    const char *nested; /* of a checkpoint: a package made from it, whose nested weights run, too */
} stint_model_options;

/* Opens a Hugging Face folder (config.json, *.safetensors, tokenizer) or a .gguf file. Weights are
 * mapped, not copied. STINT_E_IO, E_FORMAT, E_UNSUPPORTED (the text lists what is known), E_NOMEM.
 * *model is *returned*; free with stint_model_close. */
STINT_API stint_status stint_model_open(const char *path, const stint_model_options *options,
                                        stint_model **model);

/* Opens a model preset: random weights in the shape of a known model, without a tokenizer. They are
 * BF16, by default (STINT_EXEC_NPU) INT8, or blocks of gpt-oss (STINT_EXEC_FAST). E_ARG lists the
 * known names. *model is *returned*; free with stint_model_close. */
STINT_API stint_status stint_model_open_preset(const char *name, const stint_model_options *options,
                                               stint_model **model);

/* The name of the i-th model preset, or NULL past the last. Static. */
STINT_API const char *stint_preset_name(size_t i);

STINT_API void stint_model_close(stint_model *model);

typedef struct stint_model_info {
    size_t size;               /* set by the caller */
    const char *architecture;  /* e.g. "qwen2"; borrowed from the model, as all strings here */
    const char *source;        /* "huggingface", "gguf" or "preset" */
    const char *weight_type;   /* the type of most weight bytes, e.g. "bf16" */
    const char *activation;    /* e.g. "silu" */
    const char *norm;          /* "rmsnorm" or "layernorm" */
    const char *rope_scaling;  /* "none", "linear", "dynamic", "llama3", "yarn", "longrope" */
    const char *chat_template; /* the recognised built-in one, e.g. "chatml", or "raw" */
    uint32_t n_layers, n_heads, n_kv_heads, head_dim, hidden, ffn, n_experts, n_experts_used;
    uint32_t vocab;     /* rows of the output head */
    uint32_t context;   /* context length in tokens that the checkpoint was made for */
    uint32_t window;    /* sliding window in tokens, 0: none */
    uint32_t rope_dims; /* rotated elements per head, 0: none */
    float rope_theta;
    uint64_t n_parameters;
    uint64_t weight_bytes;            /* as stored */
    uint64_t linear_ops_per_token;    /* 2 x multiply-adds of all linears, output head excluded */
    uint64_t bytes_per_decoded_token; /* weight bytes that one decode step reads */
    uint64_t kv_bytes_per_token_f32;  /* stint_session_measure() tells of other types */
    stint_exec exec;                  /* FLOAT, NPU or FAST */
    uint32_t subgraphs_per_layer;     /* 6 */
    uint32_t static_subgraphs_per_layer; /* 5: shared by all chunks */
    uint32_t nested_low, nested_high;    /* precisions of its nested weights; 0: it has none */
    uint64_t nested_bytes;               /* of the nested weights, as stored */
    uint32_t embedding;                  /* numbers of an embedding, see stint_session_embed() */
    uint32_t n_conv_layers, conv_length; /* short convolutions instead of attention; its tokens */
    uint32_t n_state_layers, state_heads, state_keys, state_values; /* a matrix for each head */
    const char *left_out; /* parts that are not run: "vision", "audio", "vision, audio" or "" */
} stint_model_info;

STINT_API stint_status stint_model_describe(const stint_model *model, stint_model_info *info);

/* Weight bytes that one decode step reads at this precision; bytes_per_decoded_token if the model
 * has no nested weights of this precision. */
STINT_API uint64_t stint_model_bytes_per_token(const stint_model *model, uint32_t bits);

/* ---- Tokenizers */

typedef struct stint_tokenizer stint_tokenizer;

/* Opens a tokenizer without a model: a folder, tokenizer.json, tokenizer.model, vocab.json (with
 * merges.txt beside it) or a .gguf. *tokenizer is *returned*; free with stint_tokenizer_close. */
STINT_API stint_status stint_tokenizer_open(const char *path, stint_tokenizer **tokenizer);
STINT_API void stint_tokenizer_close(stint_tokenizer *tokenizer);

/* The model's tokenizer, borrowed until the model is closed; NULL if it has none. */
STINT_API const stint_tokenizer *stint_model_tokenizer(const stint_model *model);

enum {
    STINT_TOKENIZE_ADD_BOS = 1,   /* begin with BOS if the checkpoint wants it */
    STINT_TOKENIZE_PLAIN = 2,     /* special tokens in the text are ordinary characters */
    STINT_DETOKENIZE_SPECIAL = 4, /* special tokens appear in the text */
    STINT_TOKENIZE_ADD_END = 8    /* end with EOS, or what embeddings end with, if it wants it */
};

/* Encodes text[0, n_bytes) (UTF-8; broken sequences are replaced by U+FFFD as the reference
 * tokenizers do). Writes at most `capacity` ids and sets *n_ids to the number there are; E_LIMIT if
 * they did not fit. To learn the number, pass NULL and capacity 0. Thread-safe. */
STINT_API stint_status stint_tokenize(const stint_tokenizer *tokenizer, const char *text,
                                      size_t n_bytes, uint32_t flags, int32_t *ids, size_t capacity,
                                      size_t *n_ids);

/* Decodes ids to text. The size rule is the same; `capacity` alone includes the terminator. */
STINT_API stint_status stint_detokenize(const stint_tokenizer *tokenizer, const int32_t *ids,
                                        size_t n_ids, uint32_t flags, char *text, size_t capacity,
                                        size_t *n_bytes);

STINT_API size_t stint_tokenizer_vocab(const stint_tokenizer *tokenizer);
STINT_API int32_t stint_tokenizer_bos(const stint_tokenizer *tokenizer); /* -1: none */
STINT_API int32_t stint_tokenizer_eos(const stint_tokenizer *tokenizer); /* -1: none */

typedef struct stint_message {
    const char *role; /* "system", "user", "assistant", or "tool": the result of a tool call */
    const char *content;
    const char *tool_calls;   /* for "assistant": OpenAI's array as JSON text; default none */
    const char *tool_call_id; /* for "tool": the call that it answers; default none */
} stint_message;

/* Whether a model that can reason before it answers does so. */
typedef enum stint_thinking {
    STINT_THINKING_DEFAULT = 0, /* what the chat template does by default */
    STINT_THINKING_ON = 1,
    STINT_THINKING_OFF = 2
} stint_thinking;

/* How an answer begins. */
typedef enum stint_reasoning {
    STINT_REASONING_NONE = 0,     /* without reasoning */
    STINT_REASONING_POSSIBLE = 1, /* it may begin with reasoning between marks */
    STINT_REASONING_OPEN = 2      /* it begins inside reasoning: the prompt ends with the mark */
} stint_reasoning;

typedef struct stint_chat_options {
    size_t size;
    const char *tools; /* the functions the model may call: OpenAI's array as JSON text */
    stint_thinking thinking;
} stint_chat_options;

/* Renders a conversation and the opening of the assistant's turn with the checkpoint's own
 * template. If the checkpoint has no readable one, the built-in template is used
 * (stint_model_info.chat_template). The text holds special tokens: tokenize it without
 * STINT_TOKENIZE_PLAIN and without ADD_BOS. *text is *returned*, terminated; free with stint_free.
 * *reasoning (may be NULL) is the value for stint_generation.reasoning. STINT_E_ARG if the template
 * rejects the messages; E_UNSUPPORTED for tools if the template does not support them. */
STINT_API stint_status stint_chat_format(const stint_model *model, const stint_message *messages,
                                         size_t n_messages, const stint_chat_options *options,
                                         char **text, stint_reasoning *reasoning);
STINT_API void stint_free(void *pointer);

/* ---- Packages */

/* How many weights share a scale. */
typedef enum stint_weight_scale {
    STINT_SCALE_CHANNEL = 0, /* one scale per output channel */
    STINT_SCALE_TENSOR = 1   /* one scale per linear */
} stint_weight_scale;

/* Which linears run with shadow execution, which multiplies in float the part of an input that INT8
 * cannot hold. The inputs of the other linears are clipped, at the scale with the least error. */
typedef enum stint_outliers {
    STINT_OUTLIERS_AUTO = 0,  /* the fewest that keep the loss on held-out text under 0.3 % */
    STINT_OUTLIERS_SHARE = 1, /* all but the least important ones, a share of `outlier_prune` */
    STINT_OUTLIERS_NONE = 2   /* none, and nothing is clipped: scales cover the largest input */
} stint_outliers;

typedef struct stint_prepare_options {
    size_t size;
    const char *text; /* calibration text; default NULL: one that ships with stint */
    size_t text_bytes;
    const int32_t *ids; /* token ids in place of a text, for models without a tokenizer;
                           default NULL */
    size_t n_ids;
    uint32_t n_tokens; /* max tokens of calibration; default 8192 */
    stint_weight_scale weight_scale;
    stint_outliers outliers;
    float outlier_prune; /* 0 to 1; with STINT_OUTLIERS_SHARE */
    uint32_t n_threads;  /* default: one per core */
    /* Nested weights of these precisions (2 to 7 bits) beside the INT8 ones; default 0: none. */
    uint32_t bits_low, bits_high;
    float sparse; /* share of each row's weights, 0 to 0.1, that nested weights store in float
                     beside the codes; default 0 */
    const char *quantizer; /* for nested weights: see stint_quantizer(); default NULL: "descent" */
    /* For a model whose activations are mostly 0 (ReLU and its relatives): stores its neurons as
     * bundles, with predictors of the active ones, so that it runs well under a memory bound. */
    bool neurons;
    float recall;            /* share of the active neurons that predictors find; default 0.98 */
    uint32_t predictor_rank; /* default 0: depends on the model's width */
    /* Bits of a neuron's weights: 8 (the INT8 weights as they are) or 4, which halves the memory
     * and the reads; default 0: 4. The dense linears then hold the same values. */
    uint32_t neuron_bits;
    stint_progress_fn *progress;
    void *progress_context;
    bool (*canceled)(void *context); /* called often; true ends with E_CANCELED; default NULL */
    void *canceled_context;
    /* The device that will run the package, as in stint_session_options; default NULL: the best one
     * here. Inputs get a scale for each token if it can, else static ones with shadow execution. */
    const char *target;
    /* 7 or 8: INT8 weights are stored as nested codes of so many bits; default 0: beside them. */
    uint32_t one_set;
} stint_prepare_options;

/* The name of the i-th quantizer of nested weights, *about it in a line; NULL past the last. */
STINT_API const char *stint_quantizer(size_t i, const char **about);

/* How a package was made, as JSON text of *bytes bytes (docs/FORMAT.md): its calibration, its loss,
 * and for each linear the threshold, the importance and the outliers. NULL for a model that is not
 * a package; borrowed until the model is closed. */
STINT_API const char *stint_model_notes(const stint_model *model, size_t *bytes);

typedef struct stint_prepare_summary {
    size_t size;
    uint64_t bytes;           /* of the package */
    uint32_t n_linears;       /* in INT8 */
    uint32_t n_shadowed;      /* linears with shadow execution */
    double pruned;            /* share of the linears that were pruned: without shadow execution */
    uint32_t n_tokens;        /* of the calibration text */
    uint32_t held_out_tokens; /* used to measure the package's loss; 0: the text is too short */
    double float_perplexity, perplexity; /* on the held-out tokens: the source, the package */
    double divergence;                   /* mean Kullback-Leibler divergence from the source */
    double top1_agreement;               /* share of the tokens with the same likeliest next one */
    double seconds;
} stint_prepare_summary;

/* Turns a checkpoint (as stint_model_open() takes it) into a package of INT8 linears. It runs the
 * calibration text through the model in float, layer by layer, so that about one layer and the
 * embedding are in memory at a time. The package appears under its name complete or not at all.
 * `summary` may be NULL. Without a tokenizer and ids, random ids are used and a warning is logged.
 * E_IO, E_FORMAT, E_UNSUPPORTED (a package already), E_ARG, E_CANCELED, E_NOMEM. */
STINT_API stint_status stint_prepare(const char *source, const char *package,
                                     const stint_prepare_options *options,
                                     stint_prepare_summary *summary);

/* ---- Sessions */

typedef struct stint_session stint_session;

/* The i-th type that a KV cache can have, "f32" first, static; NULL after the last. */
STINT_API const char *stint_kv_name(size_t i);

#define STINT_CHUNK_AUTO UINT32_MAX

/* Texts that a session holds side by side; and those of them that stint_session_step() computes as
 * one batch, with one reading of the weights. */
enum { STINT_MAX_SEQUENCES = 64, STINT_MAX_STEP_ROWS = 16 };

/* Parts of a memory-bounded session that can be left out, to measure what they gain. */
enum {
    STINT_LEAVE_PREDICTOR = 1, /* compute all neurons of a sparse model, as if it were dense */
    STINT_LEAVE_BUNDLES = 2,   /* read a neuron's rows and column separately */
    STINT_LEAVE_CACHE = 4,     /* cache no more neurons than are computed at once */
    STINT_LEAVE_PIPELINE = 8,  /* do not compute while neurons are read */
    STINT_LEAVE_HOT = 16       /* no clusters of hot neurons */
};

typedef struct stint_session_options {
    size_t size;
    uint32_t n_threads; /* default 0: one per core that this process may run on */
    uint32_t n_context; /* max tokens of prompt and answer; default: the model's, at most 4096 */
    uint32_t chunk_len; /* prompt tokens computed together; default 0: 256, STINT_CHUNK_AUTO: the
                           length that is measured to be fastest. Results are the same */
    const char *kv;     /* type of the KV cache, a stint_kv_name(); default NULL: f16.
                           Borrowed during the call */
    uint64_t memory;    /* bound in bytes for all weights and caches in memory; default 0: no bound.
                           E_LIMIT if it is too small */
    const char *device; /* acts as the NPU: "amx" or "cpu"; "A+B": two beside the CPU; default NULL:
                           the best there is. Borrowed during the call; without effect in float */
    /* Default 0: NPU and CPU are the same threads, which run one subgraph at a time. Otherwise
     * prompts are split: NPU and CPU each have this many threads (0: one) for their subgraphs. */
    uint32_t npu_threads, cpu_threads;
    /* The precision schedule: "none" (INT8 throughout, the default), "uniform:B", "high" or "fast"
     * (the bits that lose under 1 or 10 %), or a file of stint_schedule_solve() or _train() for
     * this package. Borrowed during the call. */
    const char *schedule;
    uint32_t leave_out;   /* STINT_LEAVE_*, under a memory bound; default 0: nothing */
    const char *order;    /* execution order of a split prompt's subgraphs, see stint_order_name();
                             default NULL: "ooo". Borrowed during the call. Results are the
                             same */
    uint32_t n_sequences; /* sequences held side by side, each with a context of n_context;
                             default 0: one, at most STINT_MAX_SEQUENCES */
    uint64_t npu_memory;  /* bytes the device may take of memory of its own: feed-forward blocks go
                             there first, then attention's linears, the head last; the CPU computes
                             the rest. Default 0: no limit */
    /* Most tokens that stint_generate() drafts for a step, where it measures that this is faster:
     * what followed the same words before, or a layer of the checkpoint predicts. Same text. At
     * most STINT_MAX_STEP_ROWS - 1; default 0. None if neurons are predicted or no room is left. */
    uint32_t n_drafts;
    /* Where nothing was like the text's end, steps of so many bits of the nested weights draft, or
     * of fewer: those below the text's precision that measure faster. Default 0: none do. */
    uint32_t draft_bits;
    /* Under a memory bound, of a model with neurons, on a device with a processor of its own: the
     * share of the hot clusters that it computes while the CPU computes other neurons; above 1 that
     * of the others, too: 1.5 is all hot ones and half of the others. 0, the default: with what
     * both are measured to end at the same time; negative: none. If its nested products have the
     * CPU's bits, it shares those of steps likewise, and at 2 has all. Results are the same. */
    float npu_hot;
} stint_session_options;

/* The i-th device that stint_session_options.device takes, best first, static; NULL after the last.
 * This machine need not have it. */
STINT_API const char *stint_device_name(size_t i);

/* The i-th execution order of a split prompt's subgraphs, static; NULL after the last. */
STINT_API const char *stint_order_name(size_t i);

/* Opens a session, *returned*; free with stint_session_close. E_LIMIT, E_NOMEM, E_ARG. */
STINT_API stint_status stint_session_open(const stint_model *model,
                                          const stint_session_options *options,
                                          stint_session **session);
STINT_API void stint_session_close(stint_session *session);

/* Bytes that a session with these options would take: its KV cache and its scratch memory. */
STINT_API stint_status stint_session_measure(const stint_model *model,
                                             const stint_session_options *options,
                                             uint64_t *kv_bytes, uint64_t *scratch_bytes);

/* How a memory-bounded session divides its bound, and what it has read. */
typedef struct stint_memory_info {
    size_t size;           /* set by the caller */
    uint64_t budget_bytes; /* the bound; 0: there is none, and all else is 0 */
    uint64_t peak_bytes;   /* peak of this process's anonymous memory, taken after each step */
    /* Parts of the bound. Fixed: program, scratch, tables, and weights that every token needs. Hot:
     * weights that only some tokens need, in large pieces. Cold: single neurons. */
    uint64_t fixed_bytes, hot_bytes, cold_bytes;
    uint64_t kv_bytes;
    uint64_t bytes_read, reads; /* from the model's files, since the session was opened */
    double hit_rate;            /* share of the pieces that were in memory when they were needed */
    double computed;            /* share of a sparse model's neurons that were computed; else 0 */
    double hidden_fraction; /* share of the time spent reading in which no thread waited for it */
    double bytes_per_step;  /* read by steps after prompts, on average */
    double foreseen; /* share of the experts that steps had to read: those foreseen a layer ahead */
    double foreseen_used; /* share of what was foreseen that was needed */
    double on_npu; /* share of the computed neurons that a second processor computed (npu_hot) */
    /* What its part was planned by, if it was measured: the time of a block on the device, of each
     * neuron of it, and of a neuron on the CPU, for one row. Else 0. */
    double npu_block_seconds, npu_neuron_seconds, cpu_neuron_seconds;
} stint_memory_info;

STINT_API stint_status stint_session_memory(const stint_session *session, stint_memory_info *info);

/* How fast this machine reads a model's file and computes with its weights. */
enum { STINT_STORAGE_BLOCKS = 4, STINT_STORAGE_DEPTHS = 4 };

typedef struct stint_storage {
    size_t size;         /* set by the caller */
    bool direct;         /* reads bypass the page cache; false: the file system has no O_DIRECT */
    uint64_t file_bytes; /* a small file is read at the same few offsets again and again */
    uint32_t sequential_block[STINT_STORAGE_BLOCKS];    /* bytes of a read, 8 reads in flight */
    double sequential_per_second[STINT_STORAGE_BLOCKS]; /* reads; 0: the file is too small */
    uint32_t random_block[STINT_STORAGE_BLOCKS];        /* bytes of a read at a random offset */
    uint32_t random_depth[STINT_STORAGE_DEPTHS];        /* reads in flight, one thread each */
    double random_per_second[STINT_STORAGE_DEPTHS][STINT_STORAGE_BLOCKS];
    double dense_bytes_per_second; /* weights that a linear of one token goes through */
    double neuron_seconds;         /* to compute one of many neurons; 0: the model has none */
    double seconds;                /* that the measurement took */
    /* As in stint_memory_info, of a session as it is described in the options; else 0. */
    double npu_block_seconds, npu_neuron_seconds, cpu_neuron_seconds;
} stint_storage;

typedef struct stint_storage_options {
    size_t size;
    uint32_t n_threads;          /* to compute with; default 0: one per core */
    const char *device;          /* as in stint_session_options */
    double seconds;              /* approximate time for everything; default 0: 1 */
    stint_progress_fn *progress; /* default NULL: none */
    void *progress_context;
    /* The session that is planned for. If a second processor computes neurons in it, both are timed
     * as it would time them, in a session that is opened for this. Default NULL: they are not. */
    const stint_session_options *session;
} stint_storage_options;

/* Measures with a model's own first file and weights. storage->size must be set. E_UNSUPPORTED for
 * a model preset, E_IO, E_NOMEM. */
STINT_API stint_status stint_storage_measure(const stint_model *model,
                                             const stint_storage_options *options,
                                             stint_storage *storage);

/* What a memory bound will do, estimated from how often each neuron was active on the calibration
 * text. The figures are for one decoded token, once the caches are full. */
typedef struct stint_memory_plan {
    size_t size;           /* set by the caller */
    uint64_t budget_bytes; /* as in stint_memory_info */
    uint64_t fixed_bytes, hot_bytes, cold_bytes, kv_bytes;
    uint64_t scratch_bytes;           /* part of fixed_bytes */
    uint32_t slices, resident_slices; /* of linears that every token needs: all, those that fit */
    uint32_t expert_slices, resident_expert_slices; /* the same for a mixture's experts */
    uint32_t hot_clusters, cluster_neurons;         /* clusters that fit, neurons of each */
    uint64_t neurons, cold_neurons; /* in all layers; single ones that fit. 0: not a sparse model */
    double hit_rate, computed, bytes_per_token, reads_per_token; /* first two: stint_memory_info */
    /* Time of a token if `storage` was given, else 0. Reading overlaps with computing, except for
     * the first neurons of a layer and for shadow columns: the threads wait for those. */
    double read_seconds, compute_seconds, wait_seconds;
    double tokens_per_second;  /* without attention, norms and sampling */
    double shadow_columns;     /* read for shadow execution by a token; included in the reads */
    double on_npu;             /* as in stint_memory_info, if `storage` has the times for it */
    double drafted_per_second; /* tokens, if four of five drafts by fewer bits are right; 0: none */
} stint_memory_plan;

/* One layer of a sparse model. All figures but hit_rate are shares of its neurons. */
typedef struct stint_memory_layer {
    double active,
        predicted;    /* average of the active ones; of the predicted ones (1: no predictor) */
    double hot, cold; /* in memory: in hot clusters; as single neurons that stay */
    double wanted;    /* single neurons that a token needs, with those that share a read */
    double misses;    /* the wanted ones that are not in memory */
    double hit_rate;  /* share of the needed neurons that are in memory, hot ones included */
} stint_memory_layer;

/* Plans what stint_session_open() would do with these options and a memory bound, without opening
 * anything. storage: NULL, or a measurement. plan->size must be set. layers: NULL, or [n_layers],
 * zeros for a model without neurons. E_LIMIT: the error text has the smallest bound that works;
 * E_ARG, also for a model that was not opened with `lazy`. */
STINT_API stint_status stint_session_plan(const stint_model *model,
                                          const stint_session_options *options,
                                          const stint_storage *storage, stint_memory_plan *plan,
                                          stint_memory_layer *layers);

/* Sequences are numbered from 0; a session with one sequence has only sequence 0. */
STINT_API size_t stint_session_length(const stint_session *session,
                                      uint32_t sequence);             /* tokens held */
STINT_API size_t stint_session_context(const stint_session *session); /* max per sequence */

/* The tokens held; borrowed until the next call on the session. NULL: there is no such sequence. */
STINT_API const int32_t *stint_session_tokens(const stint_session *session, uint32_t sequence);

/* The chunk length in tokens. */
STINT_API size_t stint_session_chunk(const stint_session *session);

/* The device that computes, e.g. "cpu". Static. */
STINT_API const char *stint_session_device(const stint_session *session);

typedef struct stint_graph_info {
    size_t size;
    uint32_t n_graphs;      /* compiled static subgraphs, shared by all chunks */
    uint64_t bytes;         /* of the graphs and their buffers, without weights */
    double compile_seconds; /* spent when the session was opened */
} stint_graph_info;

/* Fills *info, whose size must be set; zeros in float. */
STINT_API stint_status stint_session_graphs(const stint_session *session, stint_graph_info *info);

/* Activations that did not fit INT8 and were clipped since the session was opened; 0 in float. */
STINT_API uint64_t stint_session_clipped(const stint_session *session);

typedef struct stint_shadow_info {
    size_t size;
    uint32_t n_linears;              /* with shadow execution */
    double outlier_channels;         /* average per linear and chunk */
    uint64_t hot_hits;               /* outlier channels whose weights were in memory */
    uint64_t cold_reads, cold_bytes; /* outlier channels that were read from the package */
    uint64_t resident_bytes;         /* weights of hot channels, in memory */
    uint64_t float_bytes;            /* size that the F32 weights of these linears would have */
    double seconds;                  /* spent on shadow execution, not overlapped with the device */
    double device_seconds;           /* spent on the same linears by the device */
} stint_shadow_info;

/* Fills *info, whose size must be set, with the totals since the session was opened. */
STINT_API stint_status stint_session_shadow(const stint_session *session, stint_shadow_info *info);

typedef struct stint_prefill_info {
    size_t size;
    uint32_t chunks, subgraphs;
    double seconds, npu_seconds, cpu_seconds; /* in total; busy time of NPU and CPU */
    double bubble_rate;    /* share of the time in which the busiest of them was idle */
    const char *order;     /* execution order of a split prefill, else NULL. Static */
    double second_seconds; /* busy time of the second of two devices; npu_seconds is the first's */
    /* The same of the prefill as it runs by the clocks of emulated devices; 0: there are none. */
    double clock_seconds, clock_bubble_rate;
} stint_prefill_info;

/* Fills *info, whose size must be set, with the last prompt's prefill; zeros before the first. */
STINT_API stint_status stint_session_prefill(const stint_session *session,
                                             stint_prefill_info *info);

/* Writes a timeline of the last prefill: trace events for Perfetto (.json), or a Gantt chart
 * (.svg). E_ARG for another suffix, E_IO. */
STINT_API stint_status stint_session_trace(const stint_session *session, const char *path);

enum { STINT_PRECISION_STEPS = 8 };

/* How uncertain the logits before a step are. */
typedef enum stint_signal {
    STINT_SIGNAL_NONE = 0,
    STINT_SIGNAL_ENTROPY = 1, /* nats */
    STINT_SIGNAL_MARGIN = 2   /* the second probability over the first, 0 to 1 */
} stint_signal;

/* "none", "entropy", "margin"; NULL past the last. Static. */
STINT_API const char *stint_signal_name(stint_signal signal);

/* A precision schedule: the weight bits of each step (PMPD, section 4.2). 8 bits are the package's
 * INT8 weights, fewer bits its nested weights. With a signal each token selects: steps[i] is the
 * first one whose thresholds[i] the signal reaches, else the last one; all start at 0. */
typedef struct stint_precision {
    size_t size;
    uint32_t prefill; /* bits for the prompt */
    uint32_t n_steps;
    struct {
        uint32_t bits, start; /* from this decode step on; the first start is 0, bits never rise */
    } steps[STINT_PRECISION_STEPS];
    stint_signal signal;                         /* NONE: steps go by their number */
    float thresholds[STINT_PRECISION_STEPS - 1]; /* [n_steps - 1], falling, not negative */
} stint_precision;

/* Sets the precision schedule from now on, at no cost. NULL: INT8 throughout, the schedule of a new
 * session. Prompts and stint_session_eval() run at `prefill`; stint_generate() counts its decode
 * steps. A memory-bounded session has only the nested weights of the schedule that it was opened
 * with: no higher precision can be set. E_ARG and E_UNSUPPORTED with the reason. */
STINT_API stint_status stint_session_set_precision(stint_session *session,
                                                   const stint_precision *precision);

/* Fills *precision, whose size must be set, with the present schedule. Returns true if a learned
 * schedule selects a new one after each prompt. */
STINT_API bool stint_session_precision(const stint_session *session, stint_precision *precision);

/* The precision of the weights that computed the newest logits; 0 for a model in float. */
STINT_API uint32_t stint_session_bits(const stint_session *session);

/* One step of n different sequences: appends ids[i] to sequences[i] and gives float32 logits [n,
 * vocab], or none for NULL. They are computed in batches of STINT_MAX_STEP_ROWS, or of chunk_len
 * where that is less; each batch reads the weights once. What a sequence gets does not depend on
 * the others. On failure each holds what it held before. E_ARG, E_LIMIT (full), E_CANCELED. */
STINT_API stint_status stint_session_step(stint_session *session, const uint32_t *sequences,
                                          const int32_t *ids, size_t n, float *logits);

/* Save writes the tokens of a sequence and their KV cache to a file. Load replaces what a sequence
 * holds by such a file; the model and the type of the cache must be the same. Other threads may
 * compute other sequences meanwhile. E_IO, E_FORMAT, E_LIMIT (longer than the context), E_ARG (from
 * another model). */
STINT_API stint_status stint_session_save(const stint_session *session, uint32_t sequence,
                                          const char *path);
STINT_API stint_status stint_session_load(stint_session *session, uint32_t sequence,
                                          const char *path);

/* Forgets all tokens from index `length` on; E_ARG if the sequence holds fewer. Of a model with
 * recurrent state the next call that computes may first compute some hundred of the tokens before
 * `length` again, with the same results. */
STINT_API stint_status stint_session_truncate(stint_session *session, uint32_t sequence,
                                              size_t length);

/* Appends tokens to a sequence. `logits`: NULL, or float32 [n_tokens, vocab] for every position if
 * `all` is set, else [1, vocab] for the last one. E_ARG for an id outside the vocabulary, E_LIMIT
 * if the context is full, E_CANCELED; on failure the sequence holds what it held before. */
STINT_API stint_status stint_session_eval(stint_session *session, uint32_t sequence,
                                          const int32_t *ids, size_t n_ids, bool all,
                                          float *logits);

/* What becomes of the hidden states of a text's tokens. */
typedef enum stint_pooling {
    STINT_POOLING_DEFAULT = 0, /* what the checkpoint says, or else their mean */
    STINT_POOLING_MEAN = 1,
    STINT_POOLING_LAST = 2,
    STINT_POOLING_FIRST = 3
} stint_pooling;

/* Replaces what a sequence holds by a text, and gives its embedding: the hidden states before the
 * output head, pooled and of length 1, float32 [stint_model_info.embedding]. Tokenize the text with
 * ADD_BOS and ADD_END. E_UNSUPPORTED for models whose embeddings need more, such as attention in
 * both directions; E_ARG, E_LIMIT, E_CANCELED. */
STINT_API stint_status stint_session_embed(stint_session *session, uint32_t sequence,
                                           const int32_t *ids, size_t n_ids, stint_pooling pooling,
                                           float *vector);

/* Makes the call that runs in `session` stop soon with E_CANCELED. From any thread or a signal. */
STINT_API void stint_session_cancel(stint_session *session);

/* ---- Generation */

/* Added to a token's logit before anything else; -INFINITY bans the token. */
typedef struct stint_logit_bias {
    int32_t id;
    float value;
} stint_logit_bias;

/* How a token is drawn. Zero is the default of every member; stint_sampling_parameter() says what
 * it stands for, and the range. */
typedef struct stint_sampling {
    size_t size;
    const stint_logit_bias *biases; /* [n_biases]; must not ban all tokens; default none */
    size_t n_biases;
    /* The parameters. */
    float temperature;    /* default 0: greedy */
    uint32_t top_k;       /* default 0: off */
    float top_p;          /* default 0: off */
    float min_p;          /* default 0: off */
    float repeat_penalty; /* default 0: off; > 1 makes the last `repeat_last` tokens less likely */
    uint32_t repeat_last; /* default 0: 64 */
    uint64_t seed;        /* same seed, same text, for any thread count; default 0 */
    /* Subtracted from the logit of a token that was generated already: once, and once for each
     * occurrence; default 0. */
    float presence_penalty, frequency_penalty;
    /* Exclude top choices: with this probability, all tokens that have at least the threshold's
     * share go, but for the least likely of them. Default 0: off; threshold 0: 0.1. */
    float xtc_probability, xtc_threshold;
    /* DRY: taken from the logit of a token that would continue a repetition of n tokens:
     * multiplier * base^(n - allowed_length), if n is at least allowed_length. Default 0: off, base
     * 1.75, length 2; repetitions are looked for in all of the text, or the last_n tokens. A token
     * with a line end, ':', '"' or '*' ends a repetition and continues none. */
    float dry_multiplier, dry_base;
    uint32_t dry_allowed_length, dry_penalty_last_n;
} stint_sampling;

typedef enum stint_parameter_type {
    STINT_PARAMETER_FLOAT = 0, /* float */
    STINT_PARAMETER_UINT = 1,  /* uint32_t */
    STINT_PARAMETER_UINT64 = 2 /* uint64_t of any value */
} stint_parameter_type;

/* One parameter of stint_sampling. All texts are static. */
typedef struct stint_parameter {
    const char *name;   /* of the member, and of the field in requests to the server */
    const char *alias;  /* another name of that field; NULL: none */
    const char *option; /* of the command, without dashes */
    const char *value;  /* how help texts call its value, such as "N" */
    const char *help;
    stint_parameter_type type;
    size_t offset;                   /* in stint_sampling */
    double min, max;                 /* range; 0 is always allowed in the struct */
    double request_min, request_max; /* range in requests to the server */
    double standard;                 /* what 0 stands for */
    double conversation;             /* see stint_model_sampling(); 0: as `standard` */
    const char *gguf;                /* after "general.sampling." in a GGUF; NULL: not there */
} stint_parameter;

/* The i-th sampling parameter, static; NULL after the last. */
STINT_API const stint_parameter *stint_sampling_parameter(size_t i);

/* Fills *sampling, whose size is set, with what suits a conversation: what the model's maker
 * recommends in generation_config.json or in the metadata of a GGUF, or else temperature 0.8, top_p
 * 0.95, min_p 0.05. Returns the parameters that are recommended, bit i for the i-th; 0: none. */
STINT_API uint64_t stint_model_sampling(const stint_model *model, stint_sampling *sampling);

/* A likely token and the natural logarithm of its probability. */
typedef struct stint_alternative {
    int32_t id;
    float logprob;
} stint_alternative;

/* Limits of one answer: stop texts, bytes of a stop text, likely tokens reported per position. */
enum { STINT_MAX_STOPS = 8, STINT_MAX_STOP_BYTES = 1024, STINT_MAX_TOP = 20 };

typedef enum stint_stop_reason {
    STINT_STOP_LENGTH = 0,   /* n_tokens reached, or no allowed token is left */
    STINT_STOP_EOS = 1,      /* the model ended its answer, or the schema allows nothing more */
    STINT_STOP_CONTEXT = 2,  /* the context is full */
    STINT_STOP_CALLBACK = 3, /* the callback returned false */
    STINT_STOP_CANCELED = 4,
    STINT_STOP_TEXT = 5 /* a stop text was generated */
} stint_stop_reason;

STINT_API const char *stint_stop_reason_name(stint_stop_reason reason);

/* The kind of a piece of text. */
typedef enum stint_text_kind {
    STINT_TEXT_ANSWER = 0,
    STINT_TEXT_REASONING = 1, /* without its marks */
    STINT_TEXT_TOOL_CALL = 2  /* the arguments of a call: a JSON object */
} stint_text_kind;

typedef struct stint_piece {
    stint_text_kind kind;
    const char *text; /* [n_bytes] */
    size_t n_bytes;
    int32_t id;                   /* of a token; -1: none */
    const char *function;         /* name of the called function; NULL if not a tool call */
    float logprob;                /* of the token, with logprobs; else 0 */
    const stint_alternative *top; /* [n_top], likeliest first, with logprobs */
    uint32_t n_top, answer;       /* its number, below n_answers */
} stint_piece;

/* Receives the answer as it is generated, in whole characters (never half a UTF-8 sequence). Text
 * is held back while it may be the beginning of a stop text or a mark; with tools, the whole answer
 * is held back. Each token comes in one call, with the text that is certain by then, which can be
 * empty. Text without a token has id -1. All is borrowed during the call. False ends the answer. */
typedef bool stint_text_fn(void *context, const stint_piece *piece);

typedef enum stint_tool_choice {
    STINT_TOOLS_AUTO = 0,     /* the model may call tools, in its own format */
    STINT_TOOLS_REQUIRED = 1, /* the answer is one call */
    STINT_TOOLS_NONE = 2
} stint_tool_choice;

typedef struct stint_generation {
    size_t size;
    uint32_t n_tokens;              /* default 0: until EOS or the context is full */
    bool ignore_eos;                /* without effect with json_schema or a required tool */
    const stint_sampling *sampling; /* default NULL: greedy; borrowed during the call */
    stint_text_fn *text;            /* default NULL */
    void *context;
    stint_progress_fn *progress; /* prefill, in tokens; default NULL */
    void *progress_context;
    uint32_t sequence;        /* of the session; default 0 */
    const char *const *stops; /* [n_stops] texts that end the answer; they are not part of it */
    size_t n_stops;           /* default none, at most STINT_MAX_STOPS */
    /* JSON text of the schema that constrains the answer (docs/SERVER.md lists the keywords);
     * "true" allows any JSON value. Default NULL. */
    const char *json_schema;
    const char *tools; /* as in stint_chat_options; default NULL */
    stint_tool_choice tool_choice;
    const char *tool;          /* the required tool's name; default NULL: any */
    bool single_call;          /* max one call per answer */
    stint_reasoning reasoning; /* of stint_chat_format(); no stop texts or schema apply to it */
    bool logprobs;  /* report the model's probabilities, before penalties, biases and the schema */
    uint32_t n_top; /* likeliest tokens reported per token, with logprobs; at most STINT_MAX_TOP */
    /* Answers to the prompt, as one batch, with logprobs; default 0: one. Answer i is drawn with
     * seed + i, in sequence + i. */
    uint32_t n_answers;
} stint_generation;

typedef struct stint_generation_result {
    size_t size; /* set by the caller; of several, in the first one */
    stint_stop_reason stop_reason;
    size_t prompt_tokens, generated_tokens;
    double prefill_seconds, decode_seconds; /* decode: from the first generated token on */
    double average_bits;                    /* of the decode steps' weights; 0: no such steps */
    size_t reasoning_tokens, tool_calls;    /* among the generated ones, marks included */
    size_t decode_steps;                    /* after the prompt */
    size_t drafted_tokens, accepted_tokens; /* computed in them as drafts; part of the answer */
    size_t self_drafted_tokens, self_accepted_tokens; /* of these, that weights drafted */
    double mean_logprob; /* of all tokens, with the one that ended it; 0 without logprobs */
    double step_median, step_p90, step_p99; /* seconds of a decode step, within 3 % */
} stint_generation_result;

/* Appends the prompt ids (at least one, unless the sequence holds some) and generates. If ids is
 * not NULL, the generated ids go to ids[0, capacity) and generation stops at `capacity`; of several
 * answers ids is [n_answers, capacity], result [n_answers]. Canceling is not a failure here: the
 * call returns OK with STINT_STOP_CANCELED. It allocates nothing, unless stop texts, biases,
 * logprobs, a schema, tools, reasoning or several answers are used. E_ARG, E_UNSUPPORTED (a keyword
 * of the schema), E_LIMIT, E_NOMEM. */
STINT_API stint_status stint_generate(stint_session *session, const int32_t *prompt,
                                      size_t n_prompt, const stint_generation *options,
                                      int32_t *ids, size_t capacity,
                                      stint_generation_result *result);

/* ---- The machine */

typedef struct stint_roofline {
    size_t size;                   /* set by the caller */
    double int8_ops_per_second;    /* INT8 multiply-add, register to register, all threads */
    double bf16_flops_per_second;  /* the same for BF16; 0 if the CPU has none */
    double float_flops_per_second; /* F32 multiply-add */
    double bytes_per_second;       /* reads of memory far larger than any cache */
    double int16_ops_per_second;   /* products of 16-bit integers; 0 where floats are as fast */
} stint_roofline;

/* Measures for about `seconds` (0: 0.5) per figure with n_threads (0: all). */
STINT_API stint_status stint_roofline_measure(uint32_t n_threads, double seconds,
                                              stint_roofline *roofline);

typedef struct stint_read_rate {
    size_t size; /* set by the caller */
    uint64_t bytes;
    double seconds;
} stint_read_rate;

/* Reads the weights of a decode step at the session's present precision once, with the session's
 * threads, and does nothing else. No step can be faster than this on the same memory. Tables and
 * scales are left out. STINT_E_UNSUPPORTED under a memory bound. */
STINT_API stint_status stint_session_read_rate(stint_session *session, stint_read_rate *rate);

/* The energy that the whole system uses, if it has a counter. */
typedef struct stint_energy {
    const char *source; /* "rapl", "battery", or NULL: this system has no counter. Static */
    uint64_t reserved[20];
} stint_energy;

STINT_API stint_status stint_energy_begin(stint_energy *energy);
/* Joules since stint_energy_begin(); negative if unknown. */
STINT_API double stint_energy_since(const stint_energy *energy);

STINT_API uint64_t stint_peak_rss_bytes(void); /* of this process, so far */
STINT_API const char *stint_cpu_name(void);
/* The instruction sets in use, space-separated, e.g. "avx2 avx512 vnni". Static. */
STINT_API const char *stint_cpu_features(void);

/* ---- Other machines, in virtual time */

typedef struct stint_simulation_options {
    size_t size;
    const char *soc;      /* see stint_soc(), or the path of a description */
    const char *soc_text; /* the description itself, in place of `soc` */
    const char *preset;   /* see stint_preset_name(); or */
    const stint_model *model;
    uint32_t prompt_tokens;
    uint32_t chunk_len;  /* default 0: 256 */
    const char *order;   /* see stint_order_name(); default NULL: "ooo" */
    float outlier_prune; /* share of the linears without shadow execution; default 0: none */
    bool gpu;            /* float subgraphs run on the GPU */
    bool rebuild;        /* one graph for the whole prompt, built for its length: no chunks */
    bool per_group;      /* INT8 with a scale per group */
    const char *trace;   /* .json or .svg file for the timeline; default NULL */
} stint_simulation_options;

typedef struct stint_simulation {
    size_t size; /* set by the caller */
    uint32_t chunks, subgraphs;
    double seconds;                  /* of the prefill, with `rebuild` including build_seconds */
    double build_seconds;            /* for graphs: once per model, or with `rebuild` per prompt */
    double npu_seconds, cpu_seconds; /* busy time */
    double bubble_rate;              /* share of the time in which the NPU was idle */
    uint64_t graph_bytes, graph_bytes_unshared; /* weights in the NPU's graphs */
    double npu_share; /* share of the linears' work that fits the NPU's memory */
    double joules;    /* power times busy time; 0: the description has no power */
    /* Decoded tokens per second at 16, 8, 4, 3 and 2 bits per weight; 0 without a bandwidth. */
    double decode[5];
} stint_simulation;

/* The name of the i-th description that ships with stint; NULL past the last. Static. */
STINT_API const char *stint_soc(size_t i);

/* Predicts a prefill from the numbers of the description alone. E_ARG, E_FORMAT, E_IO, E_NOMEM. */
STINT_API stint_status stint_simulate(const stint_simulation_options *options,
                                      stint_simulation *result);

/* ---- Evaluation */

enum { STINT_EVAL_METRICS = 4, STINT_EVAL_MAX_CHOICES = 8 };

typedef struct stint_eval_metric {
    const char *name;    /* "ppl", "acc", "top1", "kl", "ppl_ratio", "rouge_l", ...; NULL: unused */
    double value, error; /* error: the standard error */
} stint_eval_metric;

typedef struct stint_eval_result {
    size_t size;
    uint64_t items, tokens; /* scored */
    stint_eval_metric metrics[STINT_EVAL_METRICS];
    double seconds;
} stint_eval_result;

/* The score of one item. Later versions may add fields at its end. */
typedef struct stint_eval_item {
    uint64_t index;
    uint32_t n_choices, answer;
    double log_likelihood[STINT_EVAL_MAX_CHOICES];
    uint32_t lengths[STINT_EVAL_MAX_CHOICES]; /* of the endings, in characters */
    bool greedy;                              /* every token of the answer was the likeliest one */
    /* For tasks that generate, else NULL and 0. "mt_bench": a JSON list; index is the question's */
    const char *text;
    double rouge_l, token_f1;
    uint64_t tokens; /* scored, where items are windows ("ppl", "agreement"); else 0 */
    stint_eval_metric metrics[STINT_EVAL_METRICS]; /* of a window or an answer alone */
} stint_eval_item;

typedef struct stint_eval_options {
    size_t size;
    const char *task;             /* see stint_eval_task() */
    const char *data;             /* a file in the data set's own format, or a folder of them */
    const stint_model *reference; /* for "agreement"; default with a method: the model itself */
    uint64_t limit;               /* max items or windows; default 0: all */
    uint32_t window;   /* tokens evaluated together; default 0: 512, or the model's context */
    uint32_t stride;   /* tokens from window to window; default 0: non-overlapping windows */
    uint32_t n_tokens; /* max tokens of an answer; default 0: 64, or what the task has */
    const stint_session_options *session; /* default NULL */
    const char *method; /* see stint_eval_method(); default NULL: the model as it is. Needs a model
                           in float; all methods but "float" are calibrated on `text` */
    const char *text;   /* calibration text; default NULL: one that ships with stint */
    size_t text_bytes;
    stint_progress_fn *progress;
    void (*running)(void *context, const stint_eval_result *result); /* after every item */
    void (*item)(void *context, const stint_eval_item *item);
    bool (*canceled)(void *context);
    void *context; /* of the four callbacks above */
} stint_eval_options;

/* The name of the i-th task, with a one-line description in *about; NULL past the last. Static. */
STINT_API const char *stint_eval_task(size_t i, const char **about);

/* The same of the i-th quantization method to compare. */
STINT_API const char *stint_eval_method(size_t i, const char **about);

/* Scores a model. result->size must be set. E_ARG for an unknown task (the text lists the known
 * ones), E_IO, E_FORMAT (names file and line), E_CANCELED, and the statuses of sessions. */
STINT_API stint_status stint_eval(const stint_model *model, const stint_eval_options *options,
                                  stint_eval_result *result);

/* ---- Precision schedules */

/* One way of selecting precisions, and its result. */
typedef struct stint_schedule_point {
    const char *name;          /* "uniform", "schedule", "learned", "random", ... */
    stint_precision precision; /* n_steps 0: not a schedule, or one per prompt */
    double quality, average_bits;
    uint64_t items; /* fewer than all: stopped early because it was too bad */
    double error;   /* standard error of the quality; 0: not known ("bleu") */
    double seconds; /* of an answer and its prompt, on average, by the times of the precisions */
    /* Comparing: each prompt's quality (its own BLEU) and average bits, in the call; else NULL. */
    const double *scores, *bits;
    /* With them: its steps at each precision, those of prompt i at b bits in steps[9 * i + b]. */
    const uint32_t *steps;
} stint_schedule_point;

typedef struct stint_schedule_options {
    size_t size;
    const char *data;      /* prompts and references, as the task "generate" reads them; to train: a
                              text */
    const char *metric;    /* "rouge-l" (default), "bleu", "token-f1", or "agreement": ROUGE-L
                              against the reference's own answers instead of the data's, or "kl":
                              divergence from the reference behind its answer; less is better */
    uint64_t limit;        /* max items; default 0: all; to train: samples, default 256 */
    uint32_t n_tokens;     /* max tokens of an answer; default 64 */
    uint32_t n_candidates; /* steps of an answer at which a precision may begin; default 4 */
    double epsilon;        /* share of quality to lose, for "kl" the divergence; default 0.01 */
    uint32_t high, low;    /* to train and compare: the two precisions to switch between; default:
                              the highest nested one and the one below it. To solve: steps begin at
                              `high`; default: at the cheapest precision that is good enough */
    uint64_t seed;
    uint32_t epochs;              /* to train; default 30 */
    const char *const *schedules; /* to compare: as in stint_session_options */
    size_t n_schedules;
    const char *output; /* file to write; default NULL: none */
    const stint_session_options *session;
    stint_progress_fn *progress;
    void (*point)(void *context, const stint_schedule_point *point);
    bool (*canceled)(void *context);
    void *context; /* of the three callbacks above */
    /* Not to train: the model whose quality counts, e.g. in float; default: the package in INT8. */
    const stint_model *reference;
    bool chat;            /* prompts are what a user says; answers are not cut at a line's end */
    stint_signal signal;  /* to solve: find thresholds for each token instead of steps */
    const char *minimize; /* to solve: "time" (default) or "bits" of a step */
    const char *times;    /* "BITS:MS:MS,...": of a prompt's token and of a step at every precision
                             that the package has; default: they are measured */
    bool only;            /* to compare: nothing beside `schedules` */
} stint_schedule_options;

typedef struct stint_schedule_result {
    size_t size; /* set by the caller */
    stint_precision selected;
    double quality, reference; /* of the selected schedule; of the reference */
    double average_bits;
    uint64_t items;
    /* After training: the share of the training and of the held-out samples whose label was found,
     * and the share of the most frequent label in the held-out ones. */
    double training_accuracy, validation_accuracy, majority;
    double seconds;
    double answer_seconds; /* of the selected schedule, as in stint_schedule_point */
} stint_schedule_result;

/* Searches the cheapest static schedule that keeps the quality (PMPD, sections 4.1 and 4.3). It
 * tries every precision of the prompt with every one of the steps, then the steps at which lower
 * ones than the cheapest good pair's may begin, or thresholds of a signal. `point` receives every
 * point that was tried. E_UNSUPPORTED for a model without nested weights, E_ARG, E_FORMAT, E_IO,
 * E_CANCELED. */
STINT_API stint_status stint_schedule_solve(const stint_model *model,
                                            const stint_schedule_options *options,
                                            stint_schedule_result *result);
/* Trains a learned schedule, which selects precisions for each prompt. The labels are made from the
 * text: no references are needed. The same seed gives the same file. */
STINT_API stint_status stint_schedule_train(const stint_model *model,
                                            const stint_schedule_options *options,
                                            stint_schedule_result *result);
/* Evaluates options->schedules and, without `only`: INT8, each precision throughout, random
 * switches and steps, high and low in turn, and high in the first, the middle or the last third. */
STINT_API stint_status stint_schedule_compare(const stint_model *model,
                                              const stint_schedule_options *options,
                                              stint_schedule_result *result);

#ifdef __cplusplus
}
#endif

#endif
