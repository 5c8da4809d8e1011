// The metrics that views of a sweep show, and which of them are better when they are less.
import { time, bytes, percent, number } from './format.js';

const known = [
  ['iteration_time_s', 'iteration', time, true], ['tokens_per_s', 'tokens a second', number], ['samples_per_s', 'samples a second', number],
  ['tokens_per_s_per_gpu', 'tokens a second and GPU', number], ['mfu', 'MFU', percent], ['bubble_fraction', 'bubble', percent, true],
  ['exposed_communication_s', 'exposed communication', time, true], ['peak_memory_bytes', 'peak memory', bytes, true],
  ['energy_j', 'energy (J)', number, true], ['cost', 'cost', number, true], ['gpus', 'GPUs', number, true],
];
// Those that some row has: {key, name, format, less}.
export const shown = store => known.filter(([key]) => store.has(key) && store.metrics.includes(key)).map(([key, name, format, less]) =>
  ({ key, name, format, less: !!less }));
export const isLess = key => !!known.find(one => one[0] === key)?.[3];
export const words = key => String(key).replaceAll('_', ' ');
