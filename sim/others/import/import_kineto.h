/* import_kineto: makes samples of kernel times (calibrate/samples.h) of a trace of PyTorch's profiler: the Chrome trace
 * that torch.profiler.profile(record_shapes=True).export_chrome_trace(PATH) writes (pytorch/kineto,
 * libkineto/src/output_json.cpp).
 *
 * Events that are read, by "cat": cpu_op (an operation with "External id" and the shapes of its inputs), cuda_runtime
 * and cuda_driver (a launch: from "External id" to "correlation"), kernel ("External id", or only "correlation", and
 * "dur" in us), gpu_memcpy (from device to device). An operation takes the time of its kernels together. "External id"
 * names the innermost operation that was under way, so no kernel counts twice.
 * The trace is read event by event: its size does not matter, only the number of kernels and operations does. */
#ifndef DTSIM_IMPORT_KINETO_H
#define DTSIM_IMPORT_KINETO_H

#include <stdio.h>

#include "base/base.h"

/* Reads the trace and writes the samples, of each shape the median; lines "# left out: ..." say which operations and
 * kernels are in no sample, how often and why, those first that took the most time. `notes` gets a line with the share
 * of the kernels' time that the samples hold, and the names and shares of the largest that are left out. `name` stands
 * for the file in messages. Errors: what is no such trace, several kinds of GPUs, no "deviceProperties", and a trace in
 * which no kernel belongs to an operation of known shape. Nothing is written after an error. */
int import_kineto(FILE *trace, const char *name, FILE *out, FILE *notes, struct error *err);

#endif
