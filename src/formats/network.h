/* network.h - what every reader of whole networks (ONNX, TFLite, ...) gives: a graph.
 *
 * A checkpoint (checkpoint.h) is weights and a configuration that models/ turns into a graph; a
 * network's file is the graph itself.
 */
#ifndef MUC_NETWORK_H
#define MUC_NETWORK_H

#include "formats/format.h"
#include "formats/listing.h"
#include "graph/graph.h"

/* Dimensions that a file leaves open are 1..this unless the options say otherwise. */
#define MUC_NETWORK_MOST_DIM 1024

/* The range of a named dimension that the file leaves open, ends included. */
typedef struct muc_network_dim {
    const char *name;
    uint32_t lo, hi;
    const char *formula; /* of other dimensions, "past + m"; NULL: a range */
} muc_network_dim;

/* What an input is, where that is more than the file says. */
typedef struct muc_network_type {
    const char *name;
    muc_dtype dtype;
} muc_network_type;

/* All is borrowed for the call. */
typedef struct muc_network_options {
    const muc_network_dim *dims;
    size_t dim_count;
    /* Values of inputs, as muc_network_match gives them. A reader uses those on which a shape or
     * an attribute depends: the graph is then made for these values alone. */
    const muc_tensor_view *known;
    size_t known_count;
    /* Types of inputs that the file calls FLOAT and means as integers (formats/onnx/integers.h). */
    const muc_network_type *types;
    size_t type_count;
    /* Samples of the inputs, as muc_network_match gives them, where they and the results that
     * belong to them are whole numbers of 32 bits (formats/onnx/integers.h); 0: none. */
    const muc_tensor_view *whole;
    size_t whole_count;
    bool may_list;    /* a network with operators that muc does not have opens as a listing */
    const char *arch; /* path of the network that a file of weights alone belongs to; NULL: none */
} muc_network_options;

/* The array that is input number i of `count`: by name if any input finds one of its name, or of
 * NAME where it is NAME.int8, else by position; NULL: there is none. */
const muc_tensor_view *muc_network_match(const muc_tensor_view *arrays, size_t array_count,
                                         const char *const *names, size_t count, size_t i);
/* Fails with MUC_USAGE: the network at path has an input without an array. */
muc_status muc_network_refuse_input(muc_context *ctx, const char *path,
                                    const muc_tensor_view *arrays, size_t array_count,
                                    const char *name);

/* Owns everything it points to. */
typedef struct muc_network {
    const char *path;       /* as given to muc_network_open */
    const char *format;     /* name of the row that read it */
    muc_arena arena;        /* what constants borrow, if not a mapped file */
    muc_mapped_file *files; /* mapped until muc_network_close */
    muc_graph *graph;
    muc_listing listing; /* where it lacks operators, and may: in the place of the graph */
    bool reads_integers; /* of whole samples: values that the file calls FLOAT are integers */
    bool arch_used;      /* the file named by the options' arch was opened */
} muc_network;

typedef bool muc_network_probe(const muc_source *source);
/* Fills network->graph, or the listing of a network that lacks operators; arena and files belong to
 * the caller, on failure too. */
typedef muc_status muc_network_read(muc_context *ctx, const muc_source *source,
                                    const muc_network_options *options, muc_network *network);

typedef struct muc_network_format {
    const char *name, *meaning;
    muc_network_probe *probe; /* reads a few bytes only */
    muc_network_read *read;
} muc_network_format;

/* The registry: rows 0 .. count-1, in the order in which files are probed. */
size_t muc_network_format_count(void);
const muc_network_format *muc_network_format_get(size_t i);

#define MUC_NETWORK(name, meaning) \
    muc_network_probe muc_##name##_probe_network; \
    muc_network_read muc_##name##_read_network;
#include "formats/networks.def"
#undef MUC_NETWORK

/* The row that recognises the source, or NULL. */
const muc_network_format *muc_network_recognise(const muc_source *source);
/* Opens a file of a row's format; options may be NULL. On failure nothing is left to close. */
muc_status muc_network_open(muc_context *ctx, const char *path, const muc_network_options *options,
                            muc_network *out);
/* The same for a file in memory; bytes and their name must outlive the network. Such a file can
 * refer to no other. */
muc_status muc_network_open_bytes(muc_context *ctx, muc_bytes bytes,
                                  const muc_network_options *options, muc_network *out);
void muc_network_close(muc_network *network);
/* To the context's failure: how to narrow a dimension of the graph that is as open as can be, if
 * there is one. */
void muc_network_hint(muc_context *ctx, const muc_graph *graph);

/* For readers of files that leave no dimension or type open: fails with MUC_USAGE if the options
 * say what these are. */
muc_status muc_network_refuse_shapes(muc_context *ctx, const muc_source *source,
                                     const muc_network_options *options);
/* Maps a file for as long as the network lives, as a source whose folder is the file's. */
muc_status muc_network_map(muc_context *ctx, const char *path, muc_network *network,
                           muc_source *out);
/* For readers of weights alone: maps options->arch for as long as the network lives. Fails with
 * MUC_USAGE where there is none. */
muc_status muc_network_open_arch(muc_context *ctx, const muc_source *source,
                                 const muc_network_options *options, muc_network *network,
                                 muc_source *out);

#endif
