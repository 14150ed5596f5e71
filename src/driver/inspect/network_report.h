/* network_report.h - what a network is, for muc inspect. */
#ifndef MUC_DRIVER_NETWORK_REPORT_H
#define MUC_DRIVER_NETWORK_REPORT_H

#include "run/opened_model.h"
#include "report/report_builder.h"

/* Adds the keys that muc/model.h lists. */
muc_status muc_network_inspect(muc_context *ctx, const muc_network *network, muc_report *report);

#endif
