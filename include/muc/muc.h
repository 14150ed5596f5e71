/* muc/muc.h - the whole host library.
 *
 *   status.h    errors, contexts, progress        run.h      continue a text
 *   report.h    results for people and programs   eval.h     perplexity, tasks
 *   model.h     open, inspect, list               compile.h  quantize, compile, verify, assemble
 *   machine.h   a machine of one's own, compared with the simulator
 *   folder.h    C code for microcontrollers: run, verify, report
 *   guess.h     what a misspelt word was meant to be
 *   visible.h   names in a form that does no harm where it is printed
 *   compress.h  a checkpoint in few bits
 *   train.h     train a language model
 *   tokenize.h  text to tokens and back
 *   bench.h     speed of language models
 *   front_end.h features of recordings, and the code that computes them on a device
 *   synth.h     checkpoints with random weights
 *   playground.h the page that runs muc in a browser, served on this computer
 *
 * Numbers are read and written as C has them, whatever locale the calling thread has set; it has
 * C's while it calls back.
 */
#ifndef MUC_MUC_H
#define MUC_MUC_H

#include "muc/bench.h"
#include "muc/compile.h"
#include "muc/compress.h"
#include "muc/eval.h"
#include "muc/folder.h"
#include "muc/front_end.h"
#include "muc/guess.h"
#include "muc/machine.h"
#include "muc/model.h"
#include "muc/playground.h"
#include "muc/report.h"
#include "muc/run.h"
#include "muc/status.h"
#include "muc/sweep.h"
#include "muc/synth.h"
#include "muc/tokenize.h"
#include "muc/train.h"
#include "muc/visible.h"

#endif
