/* The pictures of a report's page, and the page around them. */
#include "check.h"

#include <math.h>

#include "report/answers.h"
#include "report/figures.h"
#include "report/layered.h"

static muc_context *ctx;

static muc_report *new_report(void)
{
    muc_report *report;

    CHECK_OK(ctx, muc_report_new(ctx, &report));
    return report;
}

static char *page_of(muc_report *report)
{
    char *page;

    CHECK_OK(ctx, muc_report_as_html(ctx, report, "a <b> & \"c\"", &page));
    muc_report_free(report);
    return page;
}

static void has(const char *page, const char *fragment)
{
    if (!page || !strstr(page, fragment))
        fail_msg("'%s' is not in\n%s", fragment, page ? page : "no page at all");
}

static size_t count_of(const char *page, const char *fragment)
{
    size_t count = 0;

    for (const char *at = page; (at = strstr(at, fragment)); at++)
        count++;
    return count;
}

/* ---- the page ---- */

static void a_page_escapes_what_it_is_given(void **state)
{
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_text(report, "file", "<script>\x01&\"");
    page = page_of(report);
    has(page, "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>");
    has(page, "<td>&lt;script&gt;\\x01&amp;&quot;</td>");
    CHECK_EQ(count_of(page, "<script"), 1); /* the page's own */
    CHECK_EQ(count_of(page, "http:"), 0);
    CHECK_EQ(count_of(page, "https:"), 0);
    free(page);
}

static const muc_report_column columns[] = {
    { "macs", "millions", "products, \"summed\"" },
    { "name", NULL, NULL },
    { "cycles", NULL, NULL }, /* of no row */
    { NULL, NULL, NULL },
};

static muc_report *table_with_columns(void)
{
    muc_report *report = new_report();

    muc_report_begin_columns(report, "layers", columns);
    for (unsigned i = 0; i < 2; i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "name", i ? "b, \"c\"" : "a");
        if (i)
            muc_report_add_count(report, "macs", 1234567);
        muc_report_end(report);
    }
    muc_report_end(report);
    return report;
}

static void columns_stand_in_the_order_that_was_said(void **state)
{
    char *page = page_of(table_with_columns());

    (void)state;
    has(page, "<th scope=\"col\" class=\"n\" title=\"products, &quot;summed&quot;\">macs<br>"
              "<span class=\"unit\">millions</span></th><th scope=\"col\">name</th></tr>");
    has(page, "<tr><td class=\"n\">-</td><td>a</td></tr>\n"
              "<tr><td class=\"n\">1,234,567</td><td>b, &quot;c&quot;</td></tr>");
    free(page);
}

static void a_table_is_text_and_csv_in_the_same_order(void **state)
{
    muc_report *report = table_with_columns();
    char *text;

    (void)state;
    CHECK_OK(ctx, muc_report_as_text(ctx, report, &text));
    assert_string_equal(text, "layers:\n"
                              "   macs  name\n"
                              "      -  a\n"
                              "1234567  b, \"c\"\n");
    free(text);
    CHECK_OK(ctx, muc_report_as_csv(ctx, report, NULL, &text));
    assert_string_equal(text, "macs,name\n,a\n1234567,\"b, \"\"c\"\"\"\n");
    free(text);
    muc_report_free(report);
}

static void a_table_that_is_not_there_is_named(void **state)
{
    muc_report *report = table_with_columns();
    char *text;

    (void)state;
    CHECK_EQ(muc_report_as_csv(ctx, report, "buffers", &text), MUC_USAGE);
    assert_string_equal(muc_error_message(ctx),
                        "report: there is no table 'buffers'; expected layers");
    muc_error_clear(ctx);
    muc_report_free(report);
}

/* ---- answers ---- */

static void add_layer(muc_report *report, const char *name, uint64_t cycles)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "stage", "%s", name);
    muc_report_add_count(report, "cycles", cycles);
    muc_report_add_text(report, "longest", "%s", cycles > 10 ? "DMA" : "C<U");
    muc_report_add_count(report, "dram_bytes", 4096);
    muc_report_add_count(report, "macs", 2 * cycles);
    muc_report_end(report);
}

static muc_report *new_answers(void)
{
    static const muc_memory_use uses[] = {
        { "constants", "flash", 1000, 1500 },
        { "code", "flash", 700, 1500 },
        { "arena", "sram", 500, 1000 },
    };
    muc_report *report = new_report();

    muc_report_begin_table(report, "stages");
    add_layer(report, "a", 10);
    add_layer(report, "b<;fused", 60);
    add_layer(report, "c", 20);
    add_layer(report, "d", 10);
    muc_report_end(report);
    muc_report_begin_memories(report);
    for (size_t i = 0; i < 3; i++)
        muc_report_add_memory_use(report, &uses[i]);
    muc_report_end(report);
    muc_report_begin_answers(report);
    muc_report_answer_fit(report);
    muc_report_answer_costs(report);
    muc_report_end(report);
    muc_report_begin_advice(report);
    muc_report_advise(report, "%d <i> of it", 3);
    muc_report_end(report);
    return report;
}

static void answers_follow_from_the_tables(void **state)
{
    muc_report *report = new_answers();
    char *text;

    (void)state;
    CHECK_OK(ctx, muc_report_as_csv(ctx, report, "answers", &text));
    assert_string_equal(text,
                        "question,answer,detail\n"
                        "Does it fit?,No,\"flash: 1,700 of 1,500 bytes, 200 too many; "
                        "sram: 500 of 1,000 bytes, 50 %\"\n"
                        "What costs most?,\"b< 60 %, c 20 %, a 10 %\",b<: DMA; c: DMA; a: C<U\n");
    free(text);
    muc_report_free(report);
}

static void answers_stand_before_all_else_in_a_page(void **state)
{
    char *page = page_of(new_answers());

    (void)state;
    CHECK(strstr(page, "200 too many") < strstr(page, "<nav>"));
    CHECK(strstr(page, "3 &lt;i&gt; of it</li>") < strstr(page, "<nav>"));
    has(page, "<p class=\"answer no\">No</p>");
    has(page, "class=\"over\" style=\"width:100.0%\"");
    has(page, "class=\"f2\" style=\"width:50.0%\"");
    /* bars: the longest takes the whole width; colours by what the layer waits for */
    has(page, "data-v=\"60\"><span class=\"bar\"><i class=\"f1\" style=\"width:100.0%\">");
    has(page, "data-v=\"20\"><span class=\"bar\"><i class=\"f1\" style=\"width:33.3%\">");
    has(page, "data-v=\"10\"><span class=\"bar\"><i class=\"f0\" style=\"width:16.7%\">");
    has(page, "<td>C&lt;U</td>");
    CHECK_EQ(count_of(page, "C<U"), 0);
    free(page);
}

/* ---- memory ---- */

static void a_buffer_is_a_rectangle_of_its_steps_and_bytes(void **state)
{
    static const char *const steps[] = { "in", "conv" };
    static const muc_memory_buffer buffers[] = { { "x<", 0, 1000, 0, 0 }, { "y", 500, 500, 1, 1 } };
    const muc_memory_figure figure = {
        .title = "arena",
        .buffers = buffers,
        .buffer_count = 2,
        .steps = steps,
        .step_count = 2,
        .peak = 1000,
        .bound = 900,
        .limit = 65536,
    };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_memory(report, &figure);
    page = page_of(report);
    /* 1000 pixels of width are two steps, 420 of height 1000 bytes; address 0 is at the bottom */
    has(page, "<rect x=\"80.0\" y=\"24.0\" width=\"500.0\" height=\"420.0\"");
    has(page, "<rect x=\"580.0\" y=\"24.0\" width=\"500.0\" height=\"210.0\"");
    has(page, "<title>x&lt;\n1,000 bytes at 0\nstep 0 in</title>");
    has(page, "1,000 bytes used, no plan needs fewer than 900, the memory has 65,536.");
    has(page, "lower bound 900</text>");
    CHECK_EQ(count_of(page, "end of the memory"), 0); /* too far above to be drawn */
    free(page);
}

static void a_memory_of_no_steps_and_no_buffers_is_drawn(void **state)
{
    const muc_memory_figure figure = { .title = "nothing" };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_memory(report, &figure);
    page = page_of(report);
    has(page, "0 bytes used.");
    has(page, "</svg>");
    CHECK_EQ(count_of(page, "nan"), 0);
    free(page);
}

/* ---- graphs ---- */

enum { NODES = 60 };

/* a chain with an arrow past each three nodes, and some that are far apart */
static size_t make_arrows(muc_graph_arrow *arrows)
{
    size_t count = 0;

    for (uint32_t i = 1; i < NODES; i++) {
        arrows[count++] = (muc_graph_arrow){ i - 1, i };
        if (i >= 4 && i % 3 == 0)
            arrows[count++] = (muc_graph_arrow){ i - 4, i };
    }
    arrows[count++] = (muc_graph_arrow){ 0, NODES - 1 };
    arrows[count++] = (muc_graph_arrow){ 10, 50 };
    return count;
}

static void arrows_lead_down_and_boxes_do_not_touch(void **state)
{
    muc_graph_arrow arrows[3 * NODES];
    size_t count = make_arrows(arrows);
    muc_layered layout;

    (void)state;
    CHECK(muc_layered_make(NODES, arrows, count, &layout));
    for (size_t i = 0; i < layout.link_count; i++)
        CHECK_EQ(layout.nodes[layout.links[i].from].layer + 1,
                 layout.nodes[layout.links[i].to].layer);
    for (size_t a = 0; a < layout.node_count; a++) {
        double own = a < NODES ? MUC_LAYERED_NODE_WIDTH : MUC_LAYERED_POINT_WIDTH;

        CHECK(layout.nodes[a].x >= own / 2 - 0.01 && layout.nodes[a].x <= layout.width);
        for (size_t b = 0; b < a; b++) {
            double other = b < NODES ? MUC_LAYERED_NODE_WIDTH : MUC_LAYERED_POINT_WIDTH;

            if (layout.nodes[a].layer == layout.nodes[b].layer)
                CHECK(fabs(layout.nodes[a].x - layout.nodes[b].x) >=
                      (own + other) / 2 + MUC_LAYERED_GAP - 0.01);
        }
    }
    muc_layered_free(&layout);
}

static void a_chain_is_one_straight_column(void **state)
{
    muc_graph_arrow arrows[NODES];
    muc_layered layout;

    (void)state;
    for (uint32_t i = 1; i < NODES; i++)
        arrows[i - 1] = (muc_graph_arrow){ i - 1, i };
    CHECK(muc_layered_make(NODES, arrows, NODES - 1, &layout));
    CHECK_EQ(layout.layer_count, NODES);
    CHECK_EQ((long)layout.width, MUC_LAYERED_NODE_WIDTH);
    muc_layered_free(&layout);
}

static void an_arrow_goes_round_the_box_between_its_ends(void **state)
{
    /* a -> b -> c and a -> c: the point beside b */
    static const muc_graph_arrow arrows[] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
    muc_layered layout;

    (void)state;
    CHECK(muc_layered_make(3, arrows, 3, &layout));
    CHECK_EQ(layout.node_count, 4);
    CHECK_EQ(layout.nodes[3].layer, 1);
    CHECK(fabs(layout.nodes[3].x - layout.nodes[1].x) > MUC_LAYERED_NODE_WIDTH / 2.0);
    muc_layered_free(&layout);
}

static void a_graph_has_a_box_a_node_and_an_arrow_an_edge(void **state)
{
    static const muc_graph_box boxes[] = {
        { "input", NULL, NULL, 0 },
        { "a name that is far longer than a box", "[1, 8]", "12 MACs", 1 },
        { "add", "", NULL, 2 },
    };
    static const muc_graph_arrow arrows[] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
    const muc_graph_figure figure = { "graph", boxes, 3, arrows, 3 };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_graph(report, &figure);
    page = page_of(report);
    CHECK_EQ(count_of(page, "<rect"), 3);
    CHECK_EQ(count_of(page, "marker-end"), 3);
    has(page, "<title>a name that is far longer than a box\n[1, 8]\n12 MACs</title>");
    has(page, ">a name that is far lon…</text>");
    has(page, "<title>add</title>");
    free(page);
}

static void a_graph_folds_between_nodes_that_all_passes_through(void **state)
{
    /* 0 -> 1 -> 2 -> 3 beside 0 -> 4 -> 3, then 3 -> 5: rows 1 and 2 are a block */
    static const muc_graph_box boxes[] = {
        { "in", NULL, NULL, 0 },   { "left", NULL, NULL, 1 },  { "lower", NULL, NULL, 1 },
        { "join", NULL, NULL, 2 }, { "right", NULL, NULL, 1 }, { "out", NULL, NULL, 3 },
    };
    static const muc_graph_arrow arrows[] = { { 0, 1 }, { 1, 2 }, { 2, 3 },
                                              { 0, 4 }, { 4, 3 }, { 3, 5 } };
    const muc_graph_figure figure = { "graph", boxes, 6, arrows, 6 };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_graph(report, &figure);
    page = page_of(report);
    CHECK_EQ(count_of(page, "<g class=\"piece"), 4);
    CHECK_EQ(count_of(page, "<g class=\"piece block\" data-saves=\"62\">"), 1);
    has(page, "<title>unfold\nleft\nlower\nright</title>");
    has(page, ">+ 3 layers</text>");
    free(page);
}

static void a_roofline_has_roofs_and_points_below(void **state)
{
    static const muc_roof_point layers[] = { { "slow", 1000, 100, 1000 },
                                             { "fast", 1000, 10, 200 },
                                             { "idle", 0, 10, 10 } };
    const muc_roofline_figure figure = {
        "x", "y", "roofs", "layers", { "whole", 2000, 110, 1200 }, layers, 3, 8, 2,
    };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_roofline(report, &figure);
    page = page_of(report);
    has(page, "<title>slow\n10, 1</title>");
    has(page, "<title>fast\n100, 5</title>");
    has(page, "<title>18.18, 1.667</title>"); /* the legend names it */
    CHECK_EQ(count_of(page, "idle"), 0);      /* no products */
    CHECK_EQ(count_of(page, "<circle"), 3);
    free(page);
}

static void failed_allocations_of_a_picture_are_told(void **state)
{
    static const muc_graph_box boxes[] = { { "a", NULL, NULL, 0 }, { "b", NULL, NULL, 0 } };
    static const muc_graph_arrow arrows[] = { { 0, 1 } };
    const muc_graph_figure figure = { "graph", boxes, 2, arrows, 1 };
    bool failed = true;

    (void)state;
    for (long k = 0; failed; k++) {
        muc_report *report = new_report();

        muc_alloc_fail_after(k);
        muc_report_add_graph(report, &figure);
        muc_alloc_fail_after(-1);
        failed = muc_report_status(ctx, report) == MUC_NOMEM;
        CHECK(k < 100);
        muc_error_clear(ctx);
        muc_report_free(report);
    }
}

/* ---- timelines ---- */

static const char *const lanes[] = { "DMA", "CPU" }, *const work[] = { "read", "wri<te", "rest" };
static const muc_timeline_figure day = { .title = "a day",
                                         .note = "of work",
                                         .lanes = lanes,
                                         .lane_count = 2,
                                         .kinds = work,
                                         .kind_count = 3,
                                         .from = 1000,
                                         .to = 2000,
                                         .tick = 0.5 };

static muc_timeline *new_timeline(const muc_timeline_figure *figure)
{
    muc_timeline *timeline;

    CHECK_OK(ctx, muc_timeline_begin(ctx, figure, &timeline));
    return timeline;
}

static void a_timeline_shows_bars_within_its_ends(void **state)
{
    muc_timeline *timeline = new_timeline(&day);
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_timeline_add(timeline, 0, 0, 500, 1100, "first & long");
    muc_timeline_add(timeline, 1, 1, 1900, 2500, NULL);
    muc_timeline_add(timeline, 1, 2, 2500, 2600, "too late");
    muc_timeline_finish(timeline, report);
    page = page_of(report);
    has(page, "<rect x=\"100.0\" y=\"30.0\" width=\"100.0\" height=\"24\"");
    has(page, "first &amp; long\n50 µs from 500 µs</title>");
    has(page, "<rect x=\"1000.0\" y=\"64.0\" width=\"100.0\" height=\"24\"");
    has(page, "wri&lt;te");
    CHECK_EQ(count_of(page, "too late"), 0);
    CHECK_EQ(count_of(page, ">rest<"), 0); /* in the legend is what was drawn */
    free(page);
}

static void narrow_bars_are_joined_to_paler_ones(void **state)
{
    muc_timeline_figure figure = day;
    muc_report *report = new_report();
    muc_timeline *timeline;
    char *page;

    (void)state;
    figure.from = 0;
    figure.to = 10000000;
    timeline = new_timeline(&figure);
    for (uint64_t at = 0; at < 10000000; at += 20) /* 500,000 bars, half of the time */
        muc_timeline_add(timeline, 0, at < 5000000 ? 0 : 1, at, at + 10, NULL);
    muc_timeline_finish(timeline, report);
    page = page_of(report);
    CHECK(strlen(page) < 20000);
    has(page, "<rect x=\"100\" y=\"30.0\" width=\"500\" height=\"24\" class=\"f0\" "
              "fill-opacity=\"0.6\"><title>read</title>");
    has(page, "<rect x=\"600\" y=\"30.0\" width=\"500\"");
    free(page);
    muc_timeline_finish(new_timeline(&day), NULL);
}

/* ---- plots ---- */

static void a_plot_runs_through_its_points_and_leaves_out_what_is_no_number(void **state)
{
    static const double x[] = { 0, 50, 75, 100 };
    const double y[] = { 4, 2, NAN, 0 };
    const muc_plot_line line = { "training", x, y, 4, NULL };
    const muc_plot_figure figure = { "loss over steps", "step", "loss", &line, 1, false };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_plot(report, &figure);
    page = page_of(report);
    has(page, "points=\" 72.0,20.0 432.0,180.0 792.0,340.0\"");
    has(page, ">training</text>");
    has(page, ">loss over steps</h2>");
    free(page);
}

static void a_logarithmic_plot_has_powers_of_ten_and_names_its_points(void **state)
{
    static const double x[] = { 1, 10, 1000, 0 }, y[] = { 100, 100, 10000, 5 };
    static const char *const labels[] = { "a<b", "over a", "far", "not shown" };
    const muc_plot_line line = { "points", x, y, 4, labels };
    const muc_plot_figure figure = { "roofs", "x", "y", &line, 1, true };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_plot(report, &figure);
    page = page_of(report);
    has(page, ">1e0</text>");
    has(page, ">1e3</text>");
    has(page, "<circle cx=\"72.0\" cy=\"340.0\"");
    has(page, "<circle cx=\"312.0\" cy=\"340.0\"");
    has(page, "<circle cx=\"792.0\" cy=\"20.0\"");
    has(page, "<title>a&lt;b\n1, 100</title>");
    has(page, ">over a</text>");
    CHECK_EQ(count_of(page, "not shown"), 0);
    free(page);
}

static void a_plot_of_a_million_points_stays_small(void **state)
{
    enum { MANY = 1000000 };
    double *x = calloc(MANY, sizeof(*x)), *y = calloc(MANY, sizeof(*y));
    const muc_plot_line line = { "loss", x, y, MANY, NULL };
    const muc_plot_figure figure = { "loss", "step", "loss", &line, 1, false };
    muc_report *report = new_report();
    char *page;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        x[i] = (double)i;
        y[i] = (double)(i * 7919 % 1000);
    }
    muc_report_add_plot(report, &figure);
    page = page_of(report);
    CHECK(strlen(page) < 100000);
    free(page);
    free(x);
    free(y);
}

static void a_plot_without_points_says_so(void **state)
{
    const double x = 1, y = INFINITY;
    const muc_plot_line line = { "loss", &x, &y, 1, NULL };
    const muc_plot_figure figure = { "loss", "step", "loss", &line, 1, false };
    muc_report *report = new_report();
    char *page;

    (void)state;
    muc_report_add_plot(report, &figure);
    page = page_of(report);
    has(page, "There is nothing to show.");
    CHECK_EQ(count_of(page, "<svg"), 0);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_escapes_what_it_is_given),
        cmocka_unit_test(columns_stand_in_the_order_that_was_said),
        cmocka_unit_test(a_table_is_text_and_csv_in_the_same_order),
        cmocka_unit_test(a_table_that_is_not_there_is_named),
        cmocka_unit_test(answers_follow_from_the_tables),
        cmocka_unit_test(answers_stand_before_all_else_in_a_page),
        cmocka_unit_test(a_graph_folds_between_nodes_that_all_passes_through),
        cmocka_unit_test(a_roofline_has_roofs_and_points_below),
        cmocka_unit_test(a_buffer_is_a_rectangle_of_its_steps_and_bytes),
        cmocka_unit_test(a_memory_of_no_steps_and_no_buffers_is_drawn),
        cmocka_unit_test(arrows_lead_down_and_boxes_do_not_touch),
        cmocka_unit_test(a_chain_is_one_straight_column),
        cmocka_unit_test(an_arrow_goes_round_the_box_between_its_ends),
        cmocka_unit_test(a_graph_has_a_box_a_node_and_an_arrow_an_edge),
        cmocka_unit_test(failed_allocations_of_a_picture_are_told),
        cmocka_unit_test(a_plot_runs_through_its_points_and_leaves_out_what_is_no_number),
        cmocka_unit_test(a_logarithmic_plot_has_powers_of_ten_and_names_its_points),
        cmocka_unit_test(a_timeline_shows_bars_within_its_ends),
        cmocka_unit_test(narrow_bars_are_joined_to_paler_ones),
        cmocka_unit_test(a_plot_of_a_million_points_stays_small),
        cmocka_unit_test(a_plot_without_points_says_so),
    };
    int failed;

    ctx = muc_context_new(1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    muc_context_free(ctx);
    return failed;
}
