/* recurrent.c - layers that carry a state from step to step, in double between rounded states. */
#include <string.h>

#include "base/real.h"
#include "ref/walk.h"

/* One direction of one sequence at work. */
typedef struct cell {
    const muc_ref_call *call;
    size_t inputs, hidden, gates, direction;
    double *x, *h, *c, *sums, *again; /* [inputs], [hidden] each; [gates][hidden] twice */
    double clip;                      /* of c; 0: none */
} cell;

static double sigmoid(double x)
{
    return 1 / (1 + muc_exp(-x));
}

/* element i of direction d of an input, 0 where it is absent; each: elements of a direction */
static double element(const cell *s, uint32_t input, size_t each, size_t i)
{
    const muc_ref_value *value = muc_ref_input_of(s->call, input);

    return value ? muc_ref_real(value, s->direction * each + i) : 0;
}

/* gate's sum for hidden element j: of x and a bias in sums, of h and the other bias in again */
static void sum_gate(const cell *s, size_t gate, size_t j)
{
    size_t rows = s->gates * s->hidden, row = gate * s->hidden + j;
    double sum = element(s, 3, 2 * rows, row), again = element(s, 3, 2 * rows, rows + row);

    for (size_t k = 0; k < s->inputs; k++)
        sum += s->x[k] * element(s, 1, rows * s->inputs, row * s->inputs + k);
    for (size_t k = 0; k < s->hidden; k++)
        again += s->h[k] * element(s, 2, rows * s->hidden, row * s->hidden + k);
    s->sums[row] = sum;
    s->again[row] = again;
}

static double sum_of(const cell *s, size_t gate, size_t j)
{
    return s->sums[gate * s->hidden + j] + s->again[gate * s->hidden + j];
}

static void step_rnn(const cell *s)
{
    bool relu = muc_node_word_or(s->call->node, MUC_KEY_MODE, MUC_WORD_TANH) == MUC_WORD_RELU;

    for (size_t j = 0; j < s->hidden; j++) {
        double sum = sum_of(s, 0, j);

        s->h[j] = !relu ? muc_tanh(sum) : sum > 0 ? sum : 0;
    }
}

/* gates z, r, h */
static void step_gru(const cell *s)
{
    size_t n = s->hidden, rows = 3 * n;

    if (!muc_node_integer_or(s->call->node, MUC_KEY_LINEAR_BEFORE_RESET, 0)) {
        for (size_t j = 0; j < n; j++) /* the reset state takes the place of x */
            s->c[j] = sigmoid(sum_of(s, 1, j)) * s->h[j];
        for (size_t j = 0; j < n; j++) {
            double again = element(s, 3, 2 * rows, rows + 2 * n + j);

            for (size_t k = 0; k < n; k++)
                again += s->c[k] * element(s, 2, rows * n, (2 * n + j) * n + k);
            s->again[2 * n + j] = again;
        }
    } else {
        for (size_t j = 0; j < n; j++)
            s->again[2 * n + j] *= sigmoid(sum_of(s, 1, j));
    }
    for (size_t j = 0; j < n; j++) {
        double z = sigmoid(sum_of(s, 0, j));

        s->h[j] = (1 - z) * muc_tanh(sum_of(s, 2, j)) + z * s->h[j];
    }
}

/* gates i, o, f, c; peepholes i, o, f */
static void step_lstm(const cell *s)
{
    size_t n = s->hidden;

    for (size_t j = 0; j < n; j++) {
        double i = sigmoid(sum_of(s, 0, j) + element(s, 7, 3 * n, j) * s->c[j]);
        double f = sigmoid(sum_of(s, 2, j) + element(s, 7, 3 * n, 2 * n + j) * s->c[j]);

        s->c[j] = (double)(float)(f * s->c[j] + i * muc_tanh(sum_of(s, 3, j)));
        if (s->clip > 0)
            s->c[j] = s->c[j] > s->clip ? s->clip : s->c[j] < -s->clip ? -s->clip : s->c[j];
        s->h[j] =
            sigmoid(sum_of(s, 1, j) + element(s, 7, 3 * n, n + j) * s->c[j]) * muc_tanh(s->c[j]);
    }
}

static void run_step(const cell *s)
{
    for (size_t gate = 0; gate < s->gates; gate++)
        for (size_t j = 0; j < s->hidden; j++)
            sum_gate(s, gate, j);
    if (s->gates == 1)
        step_rnn(s);
    else if (s->gates == 3)
        step_gru(s);
    else
        step_lstm(s);
    for (size_t j = 0; j < s->hidden; j++)
        s->h[j] = (double)(float)s->h[j];
}

/* a state's row in an output, or out of an input, which may be absent */
static void put_state(const cell *s, uint32_t output, size_t row, const double *state)
{
    if (output < s->call->node->output_count)
        muc_ref_store_reals(s->call->outputs[output], row * s->hidden, s->hidden, state);
}

static void get_state(const cell *s, uint32_t input, size_t row, double *state)
{
    const muc_ref_value *value = muc_ref_input_of(s->call, input);

    memset(state, 0, s->hidden * sizeof(*state));
    if (value)
        muc_ref_load_reals(value, row * s->hidden, s->hidden, state);
}

/* one sequence in one direction; backwards from its own end */
static void run_sequence(const cell *s, size_t n, size_t steps, size_t batch, size_t directions,
                         bool backwards)
{
    bool first = muc_node_integer_or(s->call->node, MUC_KEY_BATCH_FIRST, 0) == 1;
    const muc_ref_value *lengths = muc_ref_input_of(s->call, 4), *x = s->call->inputs[0];
    int64_t length = lengths ? muc_ref_integer(lengths, n) : (int64_t)steps;
    size_t state = first ? n * directions + s->direction : s->direction * batch + n;

    get_state(s, 5, state, s->h);
    get_state(s, 6, state, s->c);
    for (size_t i = 0; i < steps; i++) {
        bool inside = i < (size_t)length;
        size_t t = inside && backwards ? (size_t)length - 1 - i : i;
        size_t row = first ? (n * steps + t) * directions + s->direction
                           : (t * directions + s->direction) * batch + n;

        memset(s->again, 0, s->hidden * sizeof(*s->again)); /* what y has behind the end */
        if (inside) {
            muc_ref_load_reals(x, (first ? n * steps + t : t * batch + n) * s->inputs, s->inputs,
                               s->x);
            run_step(s);
        }
        put_state(s, 0, row, inside ? s->h : s->again);
    }
    put_state(s, 1, state, s->h);
    put_state(s, 2, state, s->c);
}

muc_status muc_kernel_recurrent(const muc_ref_call *call)
{
    const muc_node *node = call->node;
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
    muc_word direction = muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD);
    const muc_ref_value *x = call->inputs[0];
    size_t steps = x->dims[first ? 1 : 0], batch = x->dims[first ? 0 : 1];
    size_t directions = direction == MUC_WORD_BIDIRECTIONAL ? 2 : 1;
    cell s = { .call = call,
               .inputs = x->dims[2],
               .hidden = call->inputs[2]->dims[2],
               .clip = (double)(float)muc_node_real_or(node, MUC_KEY_CELL_CLIP, 0) };
    void *room;

    s.gates = call->inputs[2]->dims[1] / s.hidden;
    MUC_TRY(
        muc_ref_reserve(call, (s.inputs + (2 + 2 * s.gates) * s.hidden) * sizeof(double), &room));
    s.x = room;
    s.h = s.x + s.inputs;
    s.c = s.h + s.hidden;
    s.sums = s.c + s.hidden;
    s.again = s.sums + s.gates * s.hidden;
    for (s.direction = 0; s.direction < directions; s.direction++)
        for (size_t n = 0; n < batch; n++)
            run_sequence(&s, n, steps, batch, directions,
                         s.direction == 1 || direction == MUC_WORD_REVERSE);
    return MUC_OK;
}
