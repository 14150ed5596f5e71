/* The recipes of every format's tables: each word means something, and what they say is done. */
#include "check.h"
#include "import/recipe.h"

typedef struct recipe {
    const char *name, *text;
    muc_op op;
} recipe;

static const recipe recipes[] = {
#define ONNX_OP(domain, name, first, last, op, import, evaluate)
#define ONNX_RECIPE(domain, name, first, last, op, recipe, evaluate) { name, recipe, MUC_OP_##op },
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP
#define TFLITE_ROW(number, name, version, options, least, most, shape, to, import, reals)
#define TFLITE_RECIPE(number, name, version, options, least, most, shape, to, recipe, reals) \
    { #name, recipe, MUC_OP_##to },
#include "formats/tflite/tflite_ops.def"
#define KERAS_LAYER(name, least, most, least_in, most_in, spatial, to, import)
#define KERAS_RECIPE(name, least, most, least_in, most_in, spatial, to, recipe) \
    { #name, recipe, MUC_OP_##to },
#include "formats/keras/keras_layers.def"
#undef KERAS_LAYER
#define KERAS_ACTIVATION(name, op, recipe) { name, recipe, MUC_OP_##op },
#include "formats/keras/keras_activations.def"
#undef KERAS_ACTIVATION
#define ARCH_OP(name, least, most, keys, op, import)
#define ARCH_RECIPE(name, least, most, keys, op, recipe) { #name, recipe, MUC_OP_##op },
#include "formats/torch/torch_arch.def"
#undef ARCH_OP
};

static const muc_dtype types[] = { MUC_F32, MUC_F16, MUC_I8, MUC_I64 };

/* A node of made-up inputs, all one tensor; what is added is written down as text. */
typedef struct node {
    muc_context *ctx;
    muc_graph *graph;
    muc_arena arena;
    muc_text said;
    bool has_attributes;
} node;

static muc_subject subject(const void *self)
{
    return muc_subject_of(((const node *)self)->ctx, "recipe", MUC_NO_OFFSET, "a node");
}

static muc_status attribute(void *self, const char *name, muc_value_type wanted, muc_value *out)
{
    *out = (muc_value){ .type = wanted, .integer = 1, .real = 1, .text = "none" };
    if (strcmp(name, "to") == 0)
        out->text = "f32";
    if (!((node *)self)->has_attributes)
        out->type = MUC_VALUE_ABSENT;
    return MUC_OK;
}

static muc_status input(void *self, uint32_t i, uint32_t *id)
{
    (void)self;
    (void)i;
    *id = 0;
    return MUC_OK;
}

static muc_status integers(void *self, uint32_t i, muc_value *out)
{
    static const int64_t items[] = { 1, 0, 2 };

    (void)self;
    (void)i;
    *out = (muc_value){ .type = MUC_VALUE_INTEGERS, .items = items, .count = 3 };
    return MUC_OK;
}

static muc_status constant(void *self, const char *name, muc_dtype dtype, const double *values,
                           uint32_t count, uint32_t *id)
{
    muc_text_add(&((node *)self)->said, "%s=%s", name, muc_dtype_get(dtype)->name);
    for (uint32_t i = 0; i < count; i++)
        muc_text_add(&((node *)self)->said, " %g", values[i]);
    muc_text_add(&((node *)self)->said, "; ");
    *id = 1;
    return MUC_OK;
}

static void say(node *n, muc_op op, uint32_t count, const muc_attributes *a)
{
    muc_text_add(&n->said, "%s %u", muc_op_get(op)->name, count);
    for (uint32_t i = 0; i < a->count; i++) {
        const muc_attribute *each = &a->items[i];
        muc_attribute_type type = muc_attribute_get(each->key)->type;

        muc_text_add(&n->said, " %s", muc_attribute_get(each->key)->name);
        for (uint32_t k = 0; type == MUC_ATTRIBUTE_INTEGERS && k < each->value.integers.count; k++)
            muc_text_add(&n->said, " %d", (int)each->value.integers.items[k]);
        for (uint32_t k = 0; type == MUC_ATTRIBUTE_EXPRS && k < each->value.exprs.count; k++)
            muc_text_add(&n->said, " %u",
                         muc_expr_get(n->graph->pool, each->value.exprs.items[k])->immediate);
    }
}

static muc_status step(void *self, muc_op op, const char *name, const uint32_t *inputs,
                       uint32_t count, const muc_attributes *a, uint32_t *id)
{
    (void)inputs;
    say(self, op, count, a);
    muc_text_add(&((node *)self)->said, " as %s; ", name);
    *id = 0;
    return MUC_OK;
}

static muc_status last(void *self, muc_op op, const uint32_t *inputs, uint32_t count,
                       muc_attributes *a)
{
    (void)inputs;
    say(self, op, count, a);
    return MUC_OK;
}

static muc_tensor output(void *self)
{
    return ((node *)self)->graph->tensors[0];
}

static muc_status word(void *self, const char *text, uint32_t *id)
{
    static const char *const words[] = { "activated",     "plain",     "scaled",
                                         "positive_beta", "last_axis", "pixels" };

    for (size_t i = 0; i < MUC_COUNT(words); i++)
        if (strcmp(words[i], text) == 0)
            return MUC_OK;
    if (strstr(text, ":")) { /* weights, by the letters of their dimensions */
        *id = 0;
        return MUC_OK;
    }
    return strncmp(text, "same", 4) == 0 && strspn(text + 4, "012") == strlen(text + 4)
               ? MUC_OK
               : muc_fail_on(subject(self), MUC_BUG, "the word makes no sense");
}

/* all but output 3 */
static bool wants(const void *self, uint32_t i)
{
    (void)self;
    return i != 3;
}

static muc_status bind(void *self, uint32_t i, uint32_t id)
{
    (void)id;
    muc_text_add(&((node *)self)->said, "x is %u; ", i);
    return MUC_OK;
}

static muc_status typed(void *self, uint32_t i, muc_dtype dtype, uint32_t *id)
{
    muc_text_add(&((node *)self)->said, "input %u as %s; ", i, muc_dtype_get(dtype)->name);
    *id = 0;
    return MUC_OK;
}

/* of inputs [2, 3, 4] of a type */
static muc_status run(node *n, const char *text, muc_op op, muc_dtype dtype, uint32_t count)
{
    static const muc_file_node_functions functions = { subject,  attribute, input, integers,
                                                       constant, step,      last,  output,
                                                       word,     wants,     bind,  typed };
    muc_file_node file = { .functions = &functions,
                           .self = n,
                           .ctx = n->ctx,
                           .arena = &n->arena,
                           .input_count = count,
                           .op = op };
    muc_tensor tensor = { .name = "x", .kind = MUC_TENSOR_INPUT, .dtype = dtype, .rank = 3 };
    muc_status status;
    uint32_t id;

    muc_text_free(&n->said);
    CHECK_OK(n->ctx, muc_graph_new(n->ctx, "made up", &n->graph));
    file.graph = n->graph;
    for (uint32_t i = 0; i < 3; i++)
        tensor.dims[i] = muc_expr_const(n->graph->pool, 2 + i);
    CHECK_OK(n->ctx, muc_graph_add_tensor(n->ctx, n->graph, &tensor, &id));
    tensor.name = "constant";
    CHECK_OK(n->ctx, muc_graph_add_tensor(n->ctx, n->graph, &tensor, &id));
    status = muc_import_recipe(&file, text);
    muc_graph_free(n->graph);
    return status;
}

static void every_word_of_every_row_means_something(void **state)
{
    node n = { .ctx = *state };

    for (size_t i = 0; i < MUC_COUNT(recipes); i++)
        for (unsigned kind = 0; kind < 4 * MUC_COUNT(types); kind++) {
            const recipe *r = &recipes[i];

            n.has_attributes = kind & 1;
            if (run(&n, r->text, r->op, types[kind / 4], kind & 2 ? 4 : 1) == MUC_BUG)
                fail_msg("%s: %s", r->name, muc_error_message(n.ctx));
            muc_error_clear(n.ctx);
        }
    muc_text_free(&n.said);
    muc_arena_free(&n.arena);
}

static void words_without_a_meaning_are_refused(void **state)
{
    static const char *const wrong[] = { "sqrtt 0",    ". 0 alpah=1",   "root = sqrt 0; . rot",
                                         ". 0 axis=x", "cast 0 to=f33", "[2] sqrt 0" };
    node n = { .ctx = *state };

    for (size_t i = 0; i < MUC_COUNT(wrong); i++)
        CHECK_FAILS(n.ctx, MUC_BUG, "makes no sense", run(&n, wrong[i], MUC_OP_RELU, MUC_F32, 1));
    muc_text_free(&n.said);
    muc_arena_free(&n.arena);
}

static void recipes_do_what_they_say(void **state)
{
    static const struct {
        const char *recipe, *said;
        bool has_attributes;
    } cases[] = {
        { "", "relu 2", false },
        { "[5] add 0 1 | mul 0 {0.5}", "=f32 0.5; mul 2", false },
        { "[1] s = add 0 1; gelu s mode=tanh?@fast | gelu 0", "add 2 as s; gelu 1 mode", true },
        { "[1] s = add 0 1; gelu s mode=tanh?@fast", "add 2 as s; gelu 1", false },
        { "[in:i8] abs 0 | [out:f32] neg 0:f16:half", "cast 1 to as half; neg 1", false },
        { ". 0 alpha=@alpha:2 beta=@beta gamma=@gamma/1", "relu 1 alpha", false },
        { ". 0 alpha=@alpha:2 beta=@beta gamma=@gamma/1", "relu 1 alpha beta", true },
        { "clip 0 low{0} high{@most:6}", "low=f32 0; high=f32 6; clip 3", false },
        { "clip 0 low{0} high{@most:inf}", "low=f32 0; clip 2", false },
        { "clip {0}~0", "=f32 0; clip 1", false },
        { "?turn x = transpose 0 perm=0..-2,-1,-2; abs x", "abs 1", false },
        { "?turn x = transpose 0 perm=0..-2,-1,-2; abs x", "transpose 1 perm 0 2 1 as x; abs 1",
          true },
        { ". 0 shape=*in0.0..$axis:2,in1.-1/2", "relu 1 shape 6 2", false },
        { ". 0 axes=0,2.. shape=in0", "relu 1 axes 0 2 shape 2 3 4", false },
        { "[rank<3] abs 0 | neg 0", "neg 1", false },
        { "[@fast==1] abs 0 | neg 0", "abs 1", true },
        { "[@fast==0] abs 0 | neg 0", "neg 1", true },
        { "[@fast==1] abs 0 | neg 0", "neg 1", false },
        { "x>1 = abs 0; >2 = neg x; >3 = neg x; exp x",
          "abs 1 as x; x is 1; neg 1 as ; x is 2; exp 1", false },
        { "x>1 = abs 0;", "abs 1 as x; x is 1; ", false },
        { "clip 0 5? 1?", "clip 3", false },
        { "clip 0 1? 5?", "clip 2", false },
        { "add 1..", "add 1", false },
        { "add 0:i32 1:i32", "input 0 as i32; input 1 as i32; add 2", false },
        { "add 0 list{1,@b:2,-3}:i32", "list=i32 1 2 -3; add 2", false },
        { ". 0 shift=log2@div", "relu 1 shift", true },
    };
    node n = { .ctx = *state };

    for (size_t i = 0; i < MUC_COUNT(cases); i++) {
        n.has_attributes = cases[i].has_attributes;
        CHECK_OK(n.ctx, run(&n, cases[i].recipe, MUC_OP_RELU, MUC_F32, 2));
        assert_string_equal(n.said.data, cases[i].said);
    }
    CHECK_FAILS(n.ctx, MUC_MALFORMED, "input 2 is missing",
                run(&n, ". 2", MUC_OP_RELU, MUC_F32, 2));
    CHECK_FAILS(n.ctx, MUC_MALFORMED, "axis -4 of 3",
                run(&n, ". 0 axis=-4", MUC_OP_SOFTMAX, MUC_F32, 2));
    n.has_attributes = false;
    CHECK_FAILS(n.ctx, MUC_UNSUPPORTED, "'div' is 0, expected a power of two",
                run(&n, ". 0 shift=log2@div", MUC_OP_RELU, MUC_F32, 2));
    CHECK_FAILS(n.ctx, MUC_UNSUPPORTED, "128 is 128, expected an integer of type i8",
                run(&n, "add 0 {128}:i8", MUC_OP_RELU, MUC_F32, 2));
    CHECK_FAILS(n.ctx, MUC_UNSUPPORTED, "0.5 is 0.5, expected an integer of type i8",
                run(&n, "add 0 {0.5}:i8", MUC_OP_RELU, MUC_F32, 2));
    CHECK_FAILS(n.ctx, MUC_MALFORMED, "expected more than 3",
                run(&n, ". 0 axes=3..", MUC_OP_RELU, MUC_F32, 2));
    muc_text_free(&n.said);
    muc_arena_free(&n.arena);
}

static int setup(void **state)
{
    *state = muc_context_new(1);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    muc_context_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_of_every_row_means_something),
        cmocka_unit_test(words_without_a_meaning_are_refused),
        cmocka_unit_test(recipes_do_what_they_say),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
