/* Every schedule, a line each, in the order in which they are listed. SCHEDULE(name) stands for the table
 * `const struct strategy strategy_<name>` of the file of that name. */
SCHEDULE(naive)
SCHEDULE(gpipe)
SCHEDULE(one_f_one_b)
SCHEDULE(varuna)
