/* The charts: a line for each file, CHART(file and name, its inputs, what it shows). No guards: it is included once
 * for each of the places that need all charts. */
CHART(gantt, PLOT_STACK, "what every rank does when, one row a rank; several runs stand on one time axis")
CHART(utilization, PLOT_RUN, "what the ranks do on average, over time")
CHART(memory, PLOT_RUN, "what the first, the last and the fullest rank hold, by kind, over time")
CHART(links, PLOT_RUN, "how busy each link was and what crossed it, by class, the busiest first")
CHART(breakdown, PLOT_RUNS, "where the iterations of runs went: computing, exposed communication, bubble")
CHART(bubble, PLOT_RUNS, "bubbles of runs, a bar each or curves over micro-batches, stages or GPUs, and closed forms")
CHART(scaling, PLOT_RUNS, "throughput and efficiency of runs against GPUs, weak (batch per GPU) and strong (global)")
CHART(heat, PLOT_SWEEP, "a metric of a sweep over two of its axes, the best of the others in each cell")
CHART(pareto, PLOT_SWEEP, "two metrics of a sweep's points, and those that no other point betters in both")
CHART(training, PLOT_TRAINING, "how far a training is after how much time, and where the time is lost, by cause")
CHART(collective, PLOT_FILES, "bus bandwidth and time against size: files of 'dtsim collective --json'")
CHART(fit, PLOT_FILES, "errors of a calibration against kernels' sizes: files of 'dtsim calibrate fit --json'")
