// The page of 'dtsim app': a scenario as fields, and what it would be.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { jsonOf } from '../data.js';
import { html, show, ThemeSwitch } from '../parts.js';
import { useTheme } from '../theme.js';
import { short, time, bytes, number, has } from '../format.js';
import { learn, about, first, changed, fragmentOf, stateOf } from './state.js';
import { Fields } from './fields.js';
import { Results } from './results.js';
import { stop, useAnswer } from './answers.js';
import { Lesson, stepOf } from './lesson.js';

const textMost = 900 << 10;      // B of a file that is dropped; a question has 1 MiB
// What B's answer is compared by: what ran, and how far its time may be off.
const measure = ['iteration_time_s', 'iteration_time_s_p10', 'iteration_time_s_p90', 'expected_error_share', 'expected_ratio_error_share',
  'expected_ratio_error_share_p90', 'software', 'model', 'gpu'];

// The file's text as a change of the variant: a model's config.json, or a scenario.
async function dropped(variant, file) {
  if (file.size > textMost) throw new Error(`${short(file.name)} has more than 900 KiB`);
  const text = await file.text();
  if (text.startsWith('#!') || /\.sh$/.test(file.name))
    throw new Error(`${short(file.name)} is a launch script, which needs bash: 'dtsim import megatron ${short(file.name)} > run.yaml' makes a scenario of it, which this page reads`);
  let config = null;
  try { config = JSON.parse(text); } catch { /* it is YAML then */ }
  if (config && typeof config === 'object' && (config.model_type || config.text_config))
    return { ...changed(variant, 'model', JSON.stringify({ hf_config: config })), latest: null };
  return { tour: variant.tour, text, file: file.name, set: [], latest: null };
}

function Page() {
  useTheme();
  const [state, setState] = useState(null), [shown, setShown] = useState('a'), [said, setSaid] = useState('');
  const [fragment, setFragment] = useState(location.hash), own = useRef(null), [over, setOver] = useState(false);
  const read = async () => {
    if (location.hash === own.current) return;
    try { setState(location.hash.length > 1 ? await stateOf(location.hash) : { a: first(), b: null }); setShown('a'); setSaid(''); }
    catch (error) { setState({ a: first(), b: null }); setSaid(`the address holds no state: ${error.message}`); }
    document.documentElement.dataset.read = `${Number(document.documentElement.dataset.read ?? 0) + 1}`;      // for tests
  };
  useEffect(() => { read(); addEventListener('hashchange', read); return () => removeEventListener('hashchange', read); }, []);
  useEffect(() => {
    let wanted = true;
    if (state) fragmentOf(state).then(text => {
      if (!wanted) return;
      own.current = text;
      setFragment(text);
      history.replaceState(null, '', text);
    });
    return () => { wanted = false; };
  }, [state]);

  const a = useAnswer(state?.a, null, shown === 'a'), numbers = a.answer?.exit_code === 0 ? a.answer.numbers : null;
  const against = useMemo(() => numbers && Object.fromEntries(measure.map(key => [key, numbers[key]])), [numbers]);
  const b = useAnswer(state?.b, against, shown === 'b');
  if (!state) return '';
  const which = state.b ? shown : 'a', variant = state[which], answered = which === 'b' ? b : a;
  const whole = answered.answer?.exit_code === 0 ? answered.answer.numbers : null;
  const put = next => { setSaid(''); setState(before => ({ ...before, [which]: next })); };
  const apply = (of, change) => setState(before => ({ ...before, [of]: { ...change.reduce((one, [path, value]) => changed(one, path, value), before[of]), latest: null } }));
  const drop = async file => {
    if (!file) return;
    try { put(await dropped(variant, file)); setSaid(`${short(file.name, 60)} was read`); } catch (error) { setSaid(error.message); }
  };
  const hold = event => { if ([...event.dataTransfer.types].includes('Files')) { event.preventDefault(); setOver(event.type === 'dragover'); } };
  const go = number => { setState(stepOf(number)); setShown('a'); setSaid(''); };
  const of = one => one.answer?.exit_code === 0 && !one.busy ? one.answer.numbers : null;
  const compare = () => { setState({ ...state, b: structuredClone(state.a) }); setShown('b'); };
  const keep = of => { setState({ a: state[of], b: null }); setShown('a'); };
  return html`<div class=${`app${over ? ' over' : ''}`} onDragOver=${hold} onDragLeave=${hold} onDrop=${event => { event.preventDefault(); setOver(false); drop(event.dataTransfer.files[0]); }}>
    <header><h1>dtsim <span class="soft">what if</span></h1>
      <div class="tools" role="group" aria-label="variants">
        ${state.b ? html`${['a', 'b'].map(one => html`<button class=${shown === one ? 'chosen' : ''} aria-pressed=${shown === one} id=${`show-${one}`} onClick=${() => setShown(one)}>variant ${one.toUpperCase()}</button>`)}
            <button id="keep" onClick=${() => keep(shown)}>keep only ${shown.toUpperCase()}</button>`
          : html`<button id="compare" onClick=${compare}>compare with a second variant</button>`}
        <button id="reset" onClick=${() => put({ ...variant, set: [], latest: null })} disabled=${!variant.set.length}>take all changes back</button>
      </div>
      <div class="standing"><p class="engine">engine <b>fast</b> <span class=${answered.busy ? 'busy' : ''} role="status" id="status">${answered.busy ? 'computing' : said || 'ready'}</span>${
        answered.busy && html` <button id="stop" class="small later" onClick=${stop}>stop</button>`}</p>
      <p class="brief" id="brief">${whole ? html`<b>${time(whole.iteration_time_s)}</b>${has(whole.tokens_per_s_per_gpu) ? `, ${number(whole.tokens_per_s_per_gpu)} tokens/s/GPU` : ''}${
        whole.peak_memory_bytes > 0 ? `, ${bytes(whole.peak_memory_bytes)}` : ''}` : answered.answer ? html`<b class="bad">not possible</b>` : '\u00a0'}</p></div>
      <${ThemeSwitch}/></header>
    <div class="columns">
      <${Fields} key=${which} variant=${variant} scenario=${answered.scenario} answer=${answered.answer} put=${put} drop=${drop} learn=${state.lesson ? null : () => go(1)}/>
      <div>${state.lesson && html`<${Lesson} number=${state.lesson} variants=${state} a=${of(a)} b=${of(b)} go=${go} end=${() => setState({ ...state, lesson: null })}/>`}
      <${Results} a=${a} b=${state.b ? b : null} variants=${state} shown=${which} apply=${apply} fragment=${fragment}/></div>
    </div>
    <footer>dtsim ${short(about().version)}. The numbers are of a simulation on this machine; nothing leaves it.</footer></div>`;
}

show(parts => {
  learn(jsonOf(parts.known));
  return { title: 'dtsim app', whole: true, page: html`<${Page}/>` };
});
