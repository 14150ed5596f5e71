/* answers.c - says in words what follows from a report's tables. */
#include "report/answers.h"

#include <string.h>

#include "report/costs.h"
#include "report/memories.h"
#include "report/report_builder.h"
#include "report/svg.h"

/* ---- memories ---- */

void muc_report_begin_memories(muc_report *report)
{
    static const muc_report_column columns[] = {
        { "use", NULL, "what the memory is used for" },
        { "memory", NULL, "its name in the machine's description" },
        { "bytes", "bytes", "in use" },
        { "limit", "bytes", "that the memory has" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(report, "memory", columns);
}

void muc_report_add_memory_use(muc_report *report, const muc_memory_use *use)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "use", "%s", use->use);
    muc_report_add_text(report, "memory", "%s", use->memory);
    muc_report_add_count(report, "bytes", use->bytes);
    if (use->limit)
        muc_report_add_count(report, "limit", use->limit);
    muc_report_end(report);
}

bool muc_memory_sum_at(const json_t *rows, size_t i, muc_memory_sum *out)
{
    const char *name = muc_member_text(json_array_get(rows, i), "memory");

    *out = (muc_memory_sum){ .name = name, .first = i };
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        uint64_t limit = muc_member_count(row, "limit");

        if (strcmp(muc_member_text(row, "memory"), name) != 0)
            continue;
        if (k < i)
            return false;
        out->bytes += muc_member_count(row, "bytes");
        out->limit = limit ? limit : out->limit;
    }
    return true;
}

/* ---- the table ---- */

void muc_report_begin_answers(muc_report *report)
{
    static const muc_report_column columns[] = {
        { "question", NULL, NULL },
        { "answer", NULL, NULL },
        { "detail", NULL, NULL },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(report, "answers", columns);
}

void muc_report_answer(muc_report *report, const char *question, const char *answer,
                       const char *detail)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "question", "%s", question);
    muc_report_add_text(report, "answer", "%s", answer);
    muc_report_add_text(report, "detail", "%s", detail);
    muc_report_end(report);
}

/* takes the detail over */
static void answer_with(muc_report *report, const char *question, const char *answer,
                        muc_text *detail)
{
    report->failed |= detail->failed;
    muc_report_answer(report, question, answer, detail->data ? detail->data : "");
    muc_text_free(detail);
}

void muc_report_answer_speed(muc_report *report, const char *answer, const char *detail)
{
    muc_report_answer(report, MUC_QUESTION_SPEED, *answer ? answer : "Not known", detail);
}

void muc_memory_add_words(muc_text *text, const muc_memory_sum *sum)
{
    muc_xml_add_count(text, sum->bytes);
    if (sum->limit) {
        muc_text_add(text, " of ");
        muc_xml_add_count(text, sum->limit);
    }
    muc_text_add(text, " bytes");
    if (sum->limit && sum->bytes > sum->limit) {
        muc_text_add(text, ", ");
        muc_xml_add_count(text, sum->bytes - sum->limit);
        muc_text_add(text, " too many");
    } else if (sum->limit) {
        double percent = 100.0 * (double)sum->bytes / (double)sum->limit;

        muc_text_add(text, percent < 0.1 ? ", less than 0.1 %%" : ", %.3g %%", percent);
    }
}

const char *muc_report_fit_words(const json_t *root, muc_text *detail)
{
    const json_t *rows = json_object_get(root, "memory");
    bool fits = true, is_known = false;
    size_t begin = detail->size;
    muc_memory_sum sum;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (!muc_memory_sum_at(rows, i, &sum))
            continue;
        fits = fits && (sum.limit == 0 || sum.bytes <= sum.limit);
        is_known = is_known || sum.limit;
        muc_text_add(detail, "%s%s: ", detail->size > begin ? "; " : "", sum.name);
        muc_memory_add_words(detail, &sum);
    }
    return !fits ? "No" : is_known ? "Yes" : "No limit is known";
}

void muc_report_answer_fit(muc_report *report)
{
    muc_text detail = { 0 };
    const char *answer;

    if (json_array_size(json_object_get(report->open[0], "memory")) == 0)
        return;
    answer = muc_report_fit_words(report->open[0], &detail);
    answer_with(report, MUC_QUESTION_FIT, answer, &detail);
}

void muc_report_answer_costs(muc_report *report)
{
    const json_t *largest[MUC_COSTS_SHOWN];
    muc_text answer = { 0 }, detail = { 0 };
    muc_costs costs;
    size_t count;

    if (!muc_costs_find(report->open[0], &costs))
        return;
    count = muc_costs_largest(&costs, largest);
    for (size_t i = 0; i < count; i++) {
        const char *name = muc_costs_name(&costs, largest[i], 0);
        int length = (int)muc_name_heading(name);

        muc_text_add(&answer, "%s%.*s %.3g %%", i ? ", " : "", length, name,
                     100 * muc_costs_time(&costs, largest[i]) / costs.total);
        muc_text_add(&detail, "%s%.*s: %s", i ? "; " : "", length, name,
                     muc_costs_engine(&costs, largest[i]));
    }
    report->failed |= answer.failed;
    answer_with(report, MUC_QUESTION_COSTS, answer.data ? answer.data : "", &detail);
    muc_text_free(&answer);
}

/* ---- advice ---- */

void muc_report_begin_advice(muc_report *report)
{
    static const muc_report_column columns[] = { { "advice", NULL, NULL }, { NULL, NULL, NULL } };

    muc_report_begin_columns(report, "what_to_change", columns);
}

void muc_report_advise(muc_report *report, const char *format, ...)
{
    muc_text text = { 0 };
    va_list args;

    va_start(args, format);
    muc_text_add_args(&text, format, args);
    va_end(args);
    report->failed |= text.failed;
    muc_report_begin_row(report);
    muc_report_add_text(report, "advice", "%s", text.data ? text.data : "");
    muc_report_end(report);
    muc_text_free(&text);
}
