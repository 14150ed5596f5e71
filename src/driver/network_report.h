/* network_report.h - what a network is, for muc inspect. */
#ifndef MUC_DRIVER_NETWORK_REPORT_H
#define MUC_DRIVER_NETWORK_REPORT_H

#include "driver/model.h"
#include "report/report.h"

/* Adds the keys that muc/model.h lists. */
muc_status muc_network_inspect(muc_context *ctx, const muc_network *network, muc_report *report);

/* Adds a row to the table that is open: name, dtype, shape, min, max, values (the first eight), top
 * (the indices of the greatest five). */
void muc_report_add_array(muc_report *report, const muc_tensor_view *view);

#endif
