/* The keys of a training's result.json and the columns of its tables. */
#include "train/training.h"

static const struct training_key keys[] = {
    {"days, days_p10, days_p50, days_p90",
     "wall time: mean of the trials that finished, and the least that 10, 50, 90 % of them "
     "do not exceed; null: none finished"},
    {"goodput, ...", "time of the steps that count over wall time, the same four"},
    {"gpu_hours, ...", "of the GPUs that train and of those that are idle beside them, recoveries included; nodes that a trace does not have up do not count"},
    {"cost, ...", "$ of the GPUs that train and of spare nodes; null: the scenario says no price"},
    {"energy_j, ...", "of all nodes, warm spare ones too, times train.energy.pue; null: the GPU's file has no power, nor has train.energy"},
    {"goodput_standard_error", "of goodput, over the trials"},
    {"steady_days", "of steps alone"},
    {"steps", "iterations with an update, of all phases"},
    {"samples", "that are trained on"},
    {"tokens", "the same; null: the model has none"},
    {"tokens_per_day", "tokens over days"},
    {"parameters", "of the model; null: not known"},
    {"gpus", "of the longest part of the training; so nodes and iteration_time_s"},
    {"nodes", "on which these GPUs are"},
    {"iteration_time_s", "of a step"},
    {"expected_error_share", "of iteration_time_s, as dtsim run has it"},
    {"mfu", "of steps; null: times are given"},
    {"mfu_all_in", "of the wall time"},
    {"time_shares", "of the mean wall time; they add up to 1"},
    {"time_shares.steps", "without what the ramp adds"},
    {"time_shares.ramp", "what smaller batches of a ramp take more than their samples would at its end"},
    {"time_shares.checkpoint_stall", "the training stands still for checkpoints"},
    {"time_shares.validation", "validations"},
    {"time_shares.lost_work", "work since the last finished checkpoint, at each failure"},
    {"time_shares.detection", "until failures are noticed"},
    {"time_shares.waiting", "for a node, where there is no spare one"},
    {"time_shares.replacement", "of nodes; none where the training goes on with fewer"},
    {"time_shares.initialisation", "of the job"},
    {"time_shares.loading", "of checkpoints"},
    {"time_shares.fewer_nodes", "what steps on fewer nodes take longer; of trainings with 'elastic' alone"},
    {"time_shares.redundant_work",
     "what steps take longer because nodes do the work of others too; of 'elastic: redundancy' alone"},
    {"failures", "of a trial, mean"},
    {"nodes_lost", "failures that lose a node"},
    {"memory_lost", "times that all copies in memory of a share of a checkpoint were lost, mean"},
    {"mtbf_s", "mean time between failures; null: nothing fails"},
    {"recovery_s", "an undisturbed recovery, mean over the causes"},
    {"trials", "that were played"},
    {"seed", "of their random failures"},
    {"finished", "trials that did"},
    {"stopped", "trials that ended for lack of spare nodes"},
    {"stuck", "trials that were given up, because they did not progress"},
    {"checkpoint",
     "null: there are none; else bytes, stall_s, finished_s (from its beginning), load_s, count, interval_s and "
     "interval_steps"},
    {"closed_form",
     "null: nothing fails, or not exponentially, or there are no checkpoints; else young, daly, exact and chosen (interval_s and goodput, of "
     "blocking checkpoints), days and goodput (of this training; null: it has spare nodes)"},
    {"shapes",
     "with 'elastic' alone: what it is on fewer nodes, each with nodes, gpus, replicas, pipeline, iteration_time_s of "
     "the "
     "whole batch, and pace: its speed over that on all nodes; deep_replicas of them have deep_pipeline stages; "
     "holed_iteration_time_s: while a node does its lost neighbour's work too"},
    {"notes", "what to know before relying on the numbers"},
    {"engine", "that simulated the steps"},
    {"version", "of dtsim"},
    {"scenario", "with every default"},
    {"tables_xxh128", "digest of each table; in a folder"},
    {"build", "digest of the sources of the program that wrote it, by which another build tells; in a folder"},
    {"run_id", "of this result and its tables, by their content; in a folder"},
    {"trials.tsv",
     "a line a trial: end, wall_s, gpu_s, energy_j (of the computers: as in result.json without train.energy.pue), failures, nodes_lost, and each loss in s"},
    {"events.tsv",
     "trial 0: time_s of wall time, kind, node (-1: none; from the number of nodes on: spare ones; resized: how "
     "many train from then on), cause, "
     "steps_lost"},
    {"phases.tsv",
     "a line for steps that are alike: phase, ramp (1: its batch still grows), batch, sequence, gpus, nodes, steps, "
     "step_s, samples, tokens, mfu, power_w (of the computers)"},
    {"progress.tsv",
     "how far the training is: steps, samples, tokens, and the wall time after which it is so far for good: "
     "uninterrupted_s (without failures), p10_s, p50_s and p90_s of the trials that finished"},
};

struct training_key training_key_at(size_t index)
{
    return index < COUNT(keys) ? keys[index] : (struct training_key){0};
}

void training_keys_print(FILE *out)
{
    fputs("\nresult.json of dtsim train, and the tables in its folder\n\n", out);
    for (size_t i = 0; i < COUNT(keys); i++)
        fprintf(out, "  %-40s %s\n", keys[i].key, keys[i].brief);
}
