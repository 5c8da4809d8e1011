/* The charts of a run: a line for each file, CHART(file and name, what it shows). No guards: it is included once for
 * each of the places that need all charts. */
CHART(gantt, "what every rank does when, one row a rank")
CHART(utilization, "what the ranks do on average, over time")
CHART(memory, "what the first, the last and the fullest rank hold, by kind, over time")
