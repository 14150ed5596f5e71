/* split_machine.c - from programs of regular expressions to automata over classes of characters.
 *
 * A state is the list of steps at which the expression may go on, best first. With the character
 * that comes next each step leads on, best first again, until a match: it ends before that
 * character, and what would come after it in the list is given up. So the state needs no look back,
 * and a look ahead by one character costs nothing.
 */
#include "text/split_machine.h"

#include <stdlib.h>
#include <string.h>

#include "mur_split.h"

enum { FAILED, START, MOST_STATES = 1024, MOST_CLASSES = 255 };

typedef struct state_list {
    uint32_t *steps;
    size_t count;
} state_list;

typedef struct machine {
    muc_context *ctx;
    const char *source;
    muc_arena *arena;
    muc_regex regex;
    /* classes of characters: the sets that each is in, a bit a set */
    uint64_t classes[MOST_CLASSES];
    uint32_t class_count;
    uint32_t *runs;
    size_t run_count, run_capacity;
    /* the automaton of one rule; table[state][class_count + 1] */
    state_list states[MOST_STATES];
    size_t state_count;
    uint16_t *table;
    /* while following a character: steps to do, and which were seen and taken */
    uint32_t *todo, *seen, *taken, *list;
    uint32_t round;
} machine;

static muc_status refuse(const machine *m, const muc_split_rule *rule, const char *why)
{
    return muc_fail(m->ctx, MUC_UNSUPPORTED, m->source, MUC_NO_OFFSET,
                    "the split pattern '%.120s' %s", rule->pattern, why);
}

/* ---- classes ---- */

typedef struct border {
    uint32_t at, set; /* where a set begins or ends */
} border;

static int by_place(const void *a, const void *b)
{
    const border *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static muc_status list_borders(const machine *m, border **out, size_t *count)
{
    const muc_regex *r = &m->regex;
    size_t most = 0;

    for (uint32_t i = 0; i < r->set_count; i++)
        most += 2 * r->sets[i].count;
    *count = 0;
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, most, out));
    for (uint32_t i = 0; i < r->set_count; i++)
        for (size_t j = 0; j < r->sets[i].count; j++) {
            (*out)[(*count)++] = (border){ r->sets[i].ranges[j].first, i };
            (*out)[(*count)++] = (border){ r->sets[i].ranges[j].last + 1, i };
        }
    if (*count > 0)
        qsort(*out, *count, sizeof(**out), by_place);
    return MUC_OK;
}

static muc_status add_run(machine *m, uint32_t first, uint64_t sets)
{
    uint32_t class = 0;

    while (class < m->class_count && m->classes[class] != sets)
        class ++;
    if (class == MOST_CLASSES)
        return muc_fail(m->ctx, MUC_UNSUPPORTED, m->source, MUC_NO_OFFSET,
                        "the split patterns tell more than %d classes of characters apart",
                        MOST_CLASSES);
    if (class == m->class_count)
        m->classes[m->class_count++] = sets;
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, m->run_count + 1, &m->run_capacity, &m->runs));
    m->runs[m->run_count++] = first << 8 | class;
    return MUC_OK;
}

/* Characters that are in the same sets are alike. */
static muc_status make_classes(machine *m)
{
    border *borders;
    size_t count;
    uint64_t sets = 0, last = UINT64_MAX;

    MUC_TRY(list_borders(m, &borders, &count));
    for (size_t i = 0, first = 0; first <= MUC_LAST_CHARACTER;) {
        for (; i < count && borders[i].at <= first; i++)
            sets ^= (uint64_t)1 << borders[i].set;
        if (sets != last)
            MUC_TRY(add_run(m, (uint32_t)first, sets));
        last = sets;
        first = i < count ? borders[i].at : MUC_LAST_CHARACTER + 1;
    }
    return MUC_OK;
}

/* ---- states ---- */

static muc_status find_state(machine *m, const muc_split_rule *rule, size_t count, uint32_t *out)
{
    state_list *s;

    for (*out = FAILED; *out < m->state_count; ++*out)
        if (m->states[*out].count == count &&
            (count == 0 || memcmp(m->states[*out].steps, m->list, count * sizeof(*m->list)) == 0))
            return MUC_OK;
    if (m->state_count == MOST_STATES)
        return refuse(m, rule, "needs too many states");
    s = &m->states[m->state_count++];
    s->count = count;
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, count, &s->steps));
    memcpy(s->steps, m->list, count * sizeof(*m->list));
    return MUC_OK;
}

/* The steps that a state's steps lead to with a class of characters ahead, into m->list;
 * class_count is the end of the text. Tells whether there was a match. */
static bool follow(machine *m, const state_list *from, uint32_t class, size_t *count)
{
    const bool at_end = class == m->class_count;
    size_t todo = 0;

    *count = 0;
    m->round++;
    for (size_t i = from->count; i > 0; i--)
        m->todo[todo++] = from->steps[i - 1];
    while (todo > 0) {
        const uint32_t at = m->todo[--todo];
        const muc_regex_step *step = &m->regex.steps[at];
        const bool in_set = !at_end && m->classes[class] >> step->set & 1;

        if (m->seen[at] == m->round)
            continue;
        m->seen[at] = m->round;
        if (step->kind == MUC_REGEX_MATCH)
            return true;
        if (step->kind == MUC_REGEX_FORK)
            m->todo[todo++] = step->other;
        if (step->kind == MUC_REGEX_FORK ||
            (step->kind == MUC_REGEX_LOOK && (at_end ? step->at_end : in_set)))
            m->todo[todo++] = step->next;
        if (step->kind == MUC_REGEX_TAKE && in_set && m->taken[step->next] != m->round) {
            m->taken[step->next] = m->round;
            m->list[(*count)++] = step->next;
        }
    }
    return false;
}

/* Will every text that is not empty have matched in the end? */
static bool always_matches(const machine *m, bool *sure)
{
    const size_t columns = m->class_count + 1;
    bool changed = true;

    for (size_t s = 0; s < m->state_count; s++)
        sure[s] = s != FAILED;
    while (changed) {
        changed = false;
        for (size_t s = START; s < m->state_count; s++)
            for (size_t c = 0; c < columns - (s == START) && sure[s]; c++) {
                const uint16_t entry = m->table[s * columns + c];

                if (!(entry & MUR_SPLIT_MATCH) && !sure[entry & (MUR_SPLIT_MATCH - 1)]) {
                    sure[s] = false;
                    changed = true;
                }
            }
    }
    return sure[START];
}

static muc_status make_automaton(machine *m, const muc_split_rule *rule, uint32_t start)
{
    const size_t columns = m->class_count + 1;
    bool sure[MOST_STATES];
    uint32_t next;

    m->state_count = 0;
    m->list[0] = start;
    MUC_TRY(find_state(m, rule, 0, &next)); /* FAILED */
    MUC_TRY(find_state(m, rule, 1, &next)); /* START */
    for (size_t s = START; s < m->state_count; s++)
        for (uint32_t c = 0; c < columns; c++) {
            size_t count;
            const bool matched = follow(m, &m->states[s], c, &count);

            if (matched && s == START)
                return refuse(m, rule, "matches no character at all");
            MUC_TRY(find_state(m, rule, count, &next));
            m->table[s * columns + c] = (uint16_t)(next | (matched ? MUR_SPLIT_MATCH : 0));
        }
    memset(m->table, 0, columns * sizeof(*m->table));
    if (rule->behavior == MUC_SPLIT_MATCHES_ONLY && !always_matches(m, sure))
        return refuse(m, rule, "removes text between its matches");
    return MUC_OK;
}

/* ---- the tables ---- */

typedef struct word_list {
    uint32_t *words;
    size_t count, capacity;
} word_list;

static muc_status put(const machine *m, word_list *list, const uint32_t *words, size_t count)
{
    MUC_TRY(MUC_ARENA_GROW(m->ctx, m->arena, list->count + count, &list->capacity, &list->words));
    memcpy(list->words + list->count, words, count * sizeof(*words));
    list->count += count;
    return MUC_OK;
}

static muc_status put_automaton(const machine *m, word_list *list)
{
    const size_t entries = m->state_count * (m->class_count + 1);
    const uint32_t states = (uint32_t)m->state_count;

    MUC_TRY(put(m, list, &states, 1));
    for (size_t i = 0; i < entries; i += 2) {
        const uint32_t pair = m->table[i] | (uint32_t)(i + 1 < entries ? m->table[i + 1] : 0) << 16;

        MUC_TRY(put(m, list, &pair, 1));
    }
    return MUC_OK;
}

static muc_status compile(machine *m, const muc_split_rule *rules, size_t rule_count,
                          word_list *list)
{
    uint32_t starts[MUR_SPLIT_STAGES];
    size_t steps;

    for (size_t i = 0; i < rule_count; i++)
        MUC_TRY(muc_regex_add(m->ctx, m->source, &rules[i], m->arena, &m->regex, &starts[i]));
    steps = m->regex.count;
    MUC_TRY(make_classes(m));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, 3 * steps, &m->todo)); /* each is put at most thrice */
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, steps, &m->seen));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, steps, &m->taken));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, steps, &m->list));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, (size_t)MOST_STATES * (m->class_count + 1), &m->table));
    MUC_TRY(put(m, list,
                (const uint32_t[3]){ (uint32_t)rule_count, (uint32_t)m->run_count, m->class_count },
                3));
    MUC_TRY(put(m, list, m->runs, m->run_count));
    for (size_t i = 0; i < rule_count; i++) {
        MUC_TRY(make_automaton(m, &rules[i], starts[i]));
        MUC_TRY(put_automaton(m, list));
    }
    return MUC_OK;
}

muc_status muc_split_compile(muc_context *ctx, const char *source, const muc_split_rule *rules,
                             size_t rule_count, muc_arena *arena, uint32_t **words, size_t *count)
{
    muc_arena scratch = { 0 };
    word_list list = { 0 };
    muc_status status;
    machine *m;

    *words = NULL;
    *count = 0;
    if (rule_count == 0)
        return MUC_OK;
    if (rule_count > MUR_SPLIT_STAGES)
        return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET,
                        "%zu split patterns one after the other, expected at most %d", rule_count,
                        MUR_SPLIT_STAGES);
    status = MUC_ARENA_NEW(ctx, &scratch, 1, &m);
    if (status == MUC_OK) {
        m->ctx = ctx;
        m->source = source;
        m->arena = &scratch;
        status = compile(m, rules, rule_count, &list);
    }
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, arena, list.count, words);
    if (status == MUC_OK) {
        memcpy(*words, list.words, list.count * sizeof(**words));
        *count = list.count;
    }
    muc_arena_free(&scratch);
    return status;
}
