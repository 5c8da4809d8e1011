// What the page and node run: parts as a report has them (plots/report/src/data.js): the glue with the worker, WebAssembly, files.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const folders = ['platforms', 'platforms/gpus', 'platforms/networks', 'platforms/communication', 'platforms/software', 'platforms/failures',
  'platforms/families', 'platforms/names', 'calibration/data', 'scenarios/models', 'scenarios/tour'];
const single = ['scenarios/paper/errors.tsv', 'scenarios/paper/memory.tsv'];

export function filesOf(sources) {
  const inside = folders.flatMap(folder => readdirSync(join(sources, folder), { withFileTypes: true })
    .filter(one => one.isFile() && /\.(yaml|csv|xml)$/.test(one.name)).map(one => `${folder}/${one.name}`));
  return Object.fromEntries([...inside, ...single].sort().map(path => [path, readFileSync(join(sources, path))]));
}
export const scriptOf = (build, sources) => `${readFileSync(join(build, 'dtsim-web.js'), 'utf8')}\n${readFileSync(join(sources, 'web/worker.js'), 'utf8')}`;
export const programOf = build => readFileSync(join(build, 'dtsim-web.wasm'));

// The simulator in this process.
export async function simulatorHere(build, sources, said = () => {}) {
  globalThis.self ??= { location: { href: '' } };
  const start = new Function(`${scriptOf(build, sources)}\nreturn simulator;`)();
  return start(await WebAssembly.compile(programOf(build)), filesOf(sources), said);
}
