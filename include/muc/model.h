/* muc/model.h - opens what a user points at: a checkpoint, a network, a quantized file or a
 * program.
 *
 *   checkpoint   a Hugging Face folder, a llama2.c file, ... (see muc_list_formats): runs in
 *                float32 on the host
 *   network      an ONNX file, ... (see muc_list_formats): a graph that runs on arrays
 *   quantized    a .bdt file of muc_quantize: to be compiled
 *   program      a .utp file of muc_compile: runs on the simulated machine
 */
#ifndef MUC_MODEL_H
#define MUC_MODEL_H

#include "muc/report.h"

MUC_API_BEGIN

/* Maps its files until muc_model_close; its context must outlive it. Once open it is only read,
 * so several sessions may share it. */
typedef struct muc_model muc_model;

typedef struct muc_model_options {
    const char *tokenizer; /* a file to use in place of the model's own; NULL: its own, if any */
    uint32_t context;      /* positions to plan for, at most the model's own; 0: its own */
    /* of a network: ranges of the dimensions that it leaves open, "NAME=N" or "NAME=LO..HI", parted
     * by commas, or what they are of others, "NAME=past + m"; NULL: 1..1024 each */
    const char *dims;
    /* of a network, for muc_compile, muc_fit and comparisons with what they made: where the file
     * leaves the number of samples open, the first dimension of an input with a name such as
     * "batch", and dims does not name it, it is 1 (muc_model_one_sample). Not with exports */
    bool one_sample;
    /* of a network: a .npz or .npy file with its inputs, for muc_run_network; NULL: none */
    const char *inputs;
    /* of a network: a picture that becomes its first input, and what is done to it
     * (muc_array_run); NULL: none, and what the input's shape and type ask for */
    const char *image, *preprocess;
    /* of a network of tokens, with a tokenizer: a text that becomes its inputs; NULL: none. Special
     * tokens written in it become themselves, or with no_special stay text */
    const char *text;
    bool no_special;
    /* of a network: files of further exports of it, each at another length; they become one network
     * for all lengths, for which context is the room in its caches. NULL and 0: none */
    const char *const *exports;
    size_t export_count;
    /* of a network: types of inputs that the file calls FLOAT and means as integers, "NAME=TYPE",
     * parted by commas; NULL: none */
    const char *types;
    /* of a file of weights alone: the network that they belong to; of a PyTorch state dict a
     * description (docs/TORCH.md) or an ONNX file, of Keras weights the model's to_json(); NULL:
     * the file is a whole network */
    const char *arch;
    /* of a network: "int8" makes its activations and weights int8, in the arithmetic of TFLite's
     * kernels, on scales chosen by running it on the arrays of a .npz or .npy file (samples along
     * the first dimension), or on a picture or a folder of them, made its first input as preprocess
     * says, or, with a tokenizer, on a text; NULL: it stays as it is */
    const char *quant, *calibration;
    /* of a network with quant: what stays float32, names of nodes or of their outputs, or
     * operators, parted by commas; NULL: what has no int8 form alone */
    const char *keep_float;
    /* of a network with quant: what it is opened for, a muc_compile with these options to this
     * path, which then refuses before the network is calibrated what cannot fit; NULL: anything */
    const struct muc_compile_options *compile;
    const char *compile_path;
} muc_model_options;

/* path NULL opens the built-in model; options NULL is all-zero. A model without a tokenizer opens,
 * but cannot take text. */
muc_status muc_model_open(muc_context *ctx, const char *path, const muc_model_options *options,
                          muc_model **out);
void muc_model_close(muc_model *model); /* NULL is fine */

/* The folder of the built-in model, valid until the process ends.
 * Fails with MUC_IO where it is neither beside the library, or the program that holds it
 * (../share/muc, ../../share/muc), nor where muc was to be installed. */
muc_status muc_builtin_path(muc_context *ctx, const char **out);

/* True of a network, which runs on arrays, not on text. */
bool muc_model_is_network(const muc_model *model);

/* What one_sample set, "batch=1", valid as long as the model; NULL: nothing. */
const char *muc_model_one_sample(const muc_model *model);

/* What a file holds, as understood. Keys of a network: file, format, parameters, weight_bytes, macs
 * (with every open dimension at its least), and the tables "dimensions", "inputs", "outputs" and
 * "operators" and "layers" (the nodes that multiply); of a checkpoint: file, format, architecture,
 * dim, layers, heads, ..., and the table "tensors"; of a program: file, machine, sizes, and the
 * tables "entries", "sections" and "placeholders". */
muc_status muc_inspect(muc_context *ctx, const muc_model *model, muc_report **out);
/* The same of a file, of a network with operators that muc does not have too, which muc_model_open
 * refuses: its keys are file, format and nodes, and the tables "inputs", "outputs" and "operators",
 * names and shapes as the file has them. A row of "operators" has the key supported. */
muc_status muc_inspect_file(muc_context *ctx, const char *path, const muc_model_options *options,
                            muc_report **out);

/* What is supported, printed from the tables: the table "formats" (name, kind, meaning), "targets"
 * (name, meaning) or "operators" (name, inputs, reference, mcu, onnx, tflite,
 * keras, meaning). */
muc_status muc_list_formats(muc_context *ctx, muc_report **out);
muc_status muc_list_targets(muc_context *ctx, muc_report **out);
muc_status muc_list_operators(muc_context *ctx, muc_report **out);
/* What is there, and what each missing thing would make possible. Keys: built_in_model,
 * data_folder, and the tables "parts" (of muc) and "programs" (of the path): name, found, where,
 * use, missing. */
muc_status muc_doctor(muc_context *ctx, muc_report **out);

MUC_API_END

#endif
