// Builds the pages of src/ and of the libraries that package-lock.json names, and says in LIBRARIES.txt which
// these are. The same sources give the same bytes.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const pages = {
  run: { script: 'run.js', styles: ['node_modules/uplot/dist/uPlot.min.css'], libraries: ['preact', 'htm', 'uplot'] },
  store: { script: 'store.js', styles: ['node_modules/tabulator-tables/dist/css/tabulator_simple.min.css'], libraries: ['preact', 'htm', 'tabulator-tables'] },
  training: { script: 'training.js', styles: [], libraries: ['preact', 'htm'] },
  validate: { script: 'validate.js', styles: [], libraries: ['preact', 'htm'] },
  app: { script: 'app/page.js', styles: ['src/app/style.css'], libraries: ['preact', 'htm'], asks: true },
};
const sha256 = (text, form) => createHash('sha256').update(text).digest(form);
const frame = readFileSync('src/page.html', 'utf8');
const licences = new Map();

const lines = ['The pages of dtsim report hold these libraries. build.sh makes them anew.', ''];
for (const [name, page] of Object.entries(pages)) {
  const made = await build({ entryPoints: [`src/${page.script}`], bundle: true, minify: true, write: false, format: 'iife',
    target: 'chrome110', charset: 'ascii', legalComments: 'none' });
  const script = made.outputFiles[0].text.trim().replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--');
  const css = [...page.styles, 'src/style.css'].map(path => readFileSync(path, 'utf8')).join('\n');
  const style = (await build({ stdin: { contents: css, loader: 'css' }, minify: true, write: false, logLevel: 'error' })).outputFiles[0].text.trim();
  const notices = page.libraries.map(library => {
    const about = JSON.parse(readFileSync(`node_modules/${library}/package.json`, 'utf8'));
    const licence = readFileSync(`node_modules/${library}/LICENSE`, 'utf8').trim();
    licences.set(library, `${library} ${about.version}, ${about.license}`);
    return `${library} ${about.version} (${about.license})\n${licence}`;
  });
  const html = frame.replace('@CONNECT@', page.asks ? " connect-src 'self';" : '').replace('@SCRIPT_HASH@', () => sha256(script, 'base64')).replace('@STYLE_HASH@', () => sha256(style, 'base64'))
    .replace('@STYLE@', () => style).replace('@SCRIPT@', () => script)
    .replace('</body>', () => `<!--\n${notices.join('\n\n').replaceAll('--', '- -')}\n-->\n</body>`);   // charset stands in the first 1,024 bytes
  writeFileSync(`${name}.html`, html);
  lines.push(`${name}.html: ${page.libraries.join(', ')}; sha256 ${sha256(html, 'hex')}`);
}
lines.push('', ...licences.values(), '');
writeFileSync('LIBRARIES.txt', lines.join('\n'));
