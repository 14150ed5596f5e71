/* sweep_report.h - a sweep's points as a table, and the best of them as pictures. */
#ifndef MUC_SWEEP_REPORT_H
#define MUC_SWEEP_REPORT_H

#include "driver/sweep/sweep_work.h"
#include "report/report_builder.h"

/* Keys and tables as muc/sweep.h lists them, of the points that have results. */
muc_status muc_sweep_report(const muc_sweep_work *work, muc_report *report);

#endif
