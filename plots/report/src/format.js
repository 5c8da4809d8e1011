// Numbers as people read them.

const pick = (value, units) => units.find(unit => Math.abs(value) >= unit[0]) ?? units[units.length - 1];
const digits = (value, count = 4) => Number(value.toPrecision(count)).toString();

const times = [[1, 1, 's'], [1e-3, 1e-3, 'ms'], [1e-6, 1e-6, 'us'], [0, 1e-9, 'ns']];
export function time(seconds, count) {
  if (!seconds) return '0 s';
  const [, scale, unit] = pick(seconds, times);
  return `${digits(seconds / scale, count)} ${unit}`;
}
// All of them in the unit of the last one, which is the largest.
export function timesLike(all) {
  const [, scale, unit] = pick(all.at(-1) ?? 0, times);
  return all.map(seconds => `${digits(seconds / scale, 6)} ${unit}`);
}
// Of minutes, hours and days.
const long = [[86400, 86400, 'days'], [3600, 3600, 'h'], [60, 60, 'min'], [1, 1, 's']];
export const longUnit = seconds => pick(seconds, long);
export function longTime(seconds) {
  if (Math.abs(seconds) < 1) return time(seconds);
  const [, scale, unit] = longUnit(seconds);
  return `${digits(seconds / scale)} ${unit}`;
}
const amounts = [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k'], [0, '']];
export function amount(value) {
  const [scale, unit] = pick(value, amounts);
  return `${digits(value / (scale || 1))} ${unit}`.trim();
}
const sizes = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [0, 'B']];
export function bytes(value) {
  const [scale, unit] = pick(value, sizes);
  return `${digits(value / (scale || 1))} ${unit}`;
}
export const percent = share => `${(100 * share).toFixed(1)} %`;
export const number = value => Math.abs(value) >= 1e4 ? Math.round(value).toLocaleString('en') : digits(value);
// A round step between about `marks` marks of an axis that is so wide.
export function roundStep(width, marks) {
  const rough = width / marks, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find(times => times * power >= rough * (1 - 1e-9));
}
export const has = value => value !== null && value !== undefined;
// Names of others may hold characters that turn text around or draw nothing: they are shown by their codes.
export const plain = text => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
  letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
export const short = (text, most = 80) => {
  const shown = plain(text);
  return shown.length > most ? `${shown.slice(0, most)}\u2026` : shown;
};
// A key as words.
export const words = key => short(String(key).replaceAll('_', ' ').replace(/\bgpu\b/, 'GPU'), 60);
