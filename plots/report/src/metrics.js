// The metrics that views of a sweep show, and which of them are better when they are less.
import { time, bytes, percent, number } from './format.js';

const known = [
  ['iteration_time_s', 'iteration', time, true], ['tokens_per_s', 'tokens a second', number], ['samples_per_s', 'samples a second', number],
  ['tokens_per_s_per_gpu', 'tokens a second and GPU', number], ['mfu', 'MFU', percent], ['bubble_fraction', 'bubble', percent, true],
  ['exposed_communication_s', 'exposed communication', time, true], ['peak_memory_bytes', 'peak memory', bytes, true],
  ['verified_iteration_time_s', 'verified iteration', time, true], ['energy_j', 'energy (J)', number, true], ['cost', 'cost', number, true], ['gpus', 'GPUs', number, true],
];
// By which people choose a configuration, as 'dtsim plan' shows them.
const ofPlans = ['iteration_time_s', 'tokens_per_s', 'mfu', 'peak_memory_bytes', 'gpus', 'cost', 'verified_iteration_time_s'];
// Those that some row has: {key, name, format, less, plan}.
export const shown = store => known.filter(([key]) => store.has(key) && store.metrics.includes(key)).map(([key, name, format, less]) =>
  ({ key, name, format, less: !!less, plan: ofPlans.includes(key) }));
export const isLess = key => !!known.find(one => one[0] === key)?.[3];
