// The fields of a variant: what a scenario may hold, from its schema, and what it holds now.
import { useMemo, useRef, useState } from 'preact/hooks';
import { html } from '../parts.js';
import { short, plain } from '../format.js';
import { about, allPaths, at, changed, fieldOf, valueOf, wrongsOf } from './state.js';

// Which values have a field of their own; all others are found by their path.
const groups = [
  ['Model', ['model.preset', 'model.sequence']],
  ['Cluster', ['cluster.platform', 'cluster.nodes']],
  ['Batch', ['batch.global', 'batch.micro']],
  ['Degrees', ['strategy.tensor', 'strategy.pipeline', 'strategy.data', 'strategy.context', 'strategy.expert', 'strategy.chunks']],
  ['Schedule', ['strategy.schedule', 'strategy.zero', 'strategy.sequence_parallel']],
  ['Memory', ['memory.precision', 'memory.optimizer', 'memory.recompute', 'memory.offload']],
  ['Software', ['software.like']],
];
// A choice that stands for a whole mapping takes the place of what that held.
const wholes = { 'model.preset': ['model', name => `{"preset":${JSON.stringify(name)}}`], 'cluster.platform': ['cluster', null] };
export const shownPaths = groups.flatMap(([, paths]) => paths);

const nameOf = path => plain(path.split('.').at(-1).replaceAll('_', ' '));
const textOf = value => value === undefined || value === null ? '' : Array.isArray(value) ? value.join(', ') : typeof value === 'object' ? value.mode ?? value.name ?? value.csv ?? JSON.stringify(value) : String(value);

// What a field's change does to the variant.
export function change(variant, path, text, scenario) {
  const [whole, make] = wholes[path] ?? [];
  if (!whole) return { ...changed(variant, path, text), latest: path };
  if (make) return { ...changed(variant, whole, text === '' ? '' : make(text)), latest: path };
  const nodes = valueOf(variant, 'cluster.nodes') ?? at(scenario, 'cluster.nodes');       // of another platform as many nodes
  const next = changed(changed(variant, 'cluster', ''), 'cluster.nodes', '');
  if (text === '') return { ...next, latest: path };
  return { ...changed(next, 'cluster', JSON.stringify({ platform: text, ...(nodes && text !== 'ideal' && { nodes: Number(nodes) }) })), latest: path };
}
// What a person chose for a field; undefined: nothing.
function chosenOf(variant, path) {
  const [whole] = wholes[path] ?? [], own = valueOf(variant, path);
  if (!whole || own !== undefined) return own;
  const text = valueOf(variant, whole);
  try { return text === undefined ? undefined : JSON.parse(text)[path.split('.')[1]]; } catch { return undefined; }
}
// What a field takes that lies in a mapping which was chosen as a whole.
function nowOf(variant, scenario, path) {
  if (path === 'model.preset') return at(scenario, 'model.title') ?? 'as the scenario has it';
  return textOf(at(scenario, path));
}

function Field({ path, variant, scenario, wrong, put }) {
  const field = fieldOf(path), chosen = chosenOf(variant, path), now = nowOf(variant, scenario, path), id = `field-${path.replaceAll('.', '-')}`;
  const set = text => put(change(variant, path, text, scenario));
  const described = wrong ? `${id}-wrong` : undefined;
  const title = field.choices?.find(one => one.name === (chosen ?? now))?.title || field.brief;
  const input = field.choices
    ? html`<select id=${id} value=${chosen ?? ''} aria-describedby=${described} aria-invalid=${!!wrong} onChange=${event => set(event.target.value)}>
        <option value="">${short(chosen === undefined ? now || 'left out' : 'as the scenario has it', 60)}</option>
        ${field.choices.map(({ name, title: text }) => html`<option value=${name} title=${plain(text)}>${plain(name)}${text && !field.brief.includes('\n') && about().files ? ` \u2013 ${short(text, 60)}` : ''}</option>`)}
        ${chosen !== undefined && !field.choices.some(one => one.name === chosen) && html`<option value=${chosen}>${short(chosen, 60)}</option>`}</select>`
    : html`<input id=${id} type=${field.kind === 'integer' ? 'number' : 'text'} min=${field.least} max=${field.most} step="1" value=${chosen ?? ''} placeholder=${now || 'left out'}
        aria-describedby=${described} aria-invalid=${!!wrong} onInput=${event => event.target.validity.badInput || set(event.target.value.trim())} autocomplete="off"/>`;
  return html`<div class=${`field${chosen === undefined ? '' : ' set'}${path === 'model.preset' ? ' long' : ''}`}><label for=${id} title=${plain(title)}>${nameOf(path)}</label>${input}
    ${chosen !== undefined && html`<button class="small" aria-label=${`take back ${nameOf(path)}`} title="take it back" onClick=${() => set('')}>\u00d7</button>`}
    ${wrong && html`<p class="wrong" id=${`${id}-wrong`}>${plain(wrong)}</p>`}</div>`;
}

// Any other value, by its path.
function Others({ variant, put, wrongs }) {
  const paths = useMemo(allPaths, []), path = useRef(), value = useRef(), [said, setSaid] = useState('');
  const [chosen, setChosen] = useState(''), field = useMemo(() => chosen && paths.includes(chosen) ? fieldOf(chosen) : null, [chosen]);
  const add = event => {
    event.preventDefault();
    const key = path.current.value.trim(), text = value.current.value.trim();
    if (!/^\w+(\.\w+)*$/.test(key) || !text) return setSaid('a path such as simulation.jitter, and a value');
    setSaid('');
    put({ ...changed(variant, key, text), latest: key });
    path.current.value = value.current.value = '';
    setChosen('');
    return undefined;
  };
  const rest = variant.set.filter(([key]) => !shownPaths.includes(key) && !(key === 'model' || key === 'cluster'));
  return html`<fieldset><legend>Any other value</legend>
    <form class="tools" onSubmit=${add}><input ref=${path} id="other-path" list="paths" placeholder="path, such as costs.speed" aria-label="path of a value" autocomplete="off"
        onInput=${event => setChosen(event.target.value.trim())}/>
      <input ref=${value} id="other-value" placeholder=${field?.choices ? short(field.choices.map(one => one.name).join(' | '), 60) : 'value'} aria-label="value" list="values" autocomplete="off"/>
      <button id="other-add">set</button></form>
    <datalist id="paths">${paths.map(one => html`<option value=${one}></option>`)}</datalist>
    <datalist id="values">${(field?.choices ?? []).map(one => html`<option value=${one.name}></option>`)}</datalist>
    <p class="note" role="status">${said || (field ? short(field.brief, 220) : '')}</p>
    ${rest.length > 0 && html`<ul class="chips">${rest.map(([key, text]) => html`<li class=${wrongs.has(key) ? 'bad' : ''}>${short(`${key}=${text}`, 90)}
      <button class="small" aria-label=${`take back ${key}`} onClick=${() => put({ ...changed(variant, key, ''), latest: null })}>\u00d7</button></li>`)}</ul>`}
    </fieldset>`;
}

export function Fields({ variant, scenario, answer, put, drop, learn }) {
  const asks = variant.text === null && about().tour.find(one => one.name === variant.tour)?.title;
  const file = useRef(), wrongs = wrongsOf(answer);
  const wrongOf = path => wrongs.get(path) ?? (wholes[path] && valueOf(variant, wholes[path][0]) ? wrongs.get(wholes[path][0]) : undefined);
  const config = valueOf(variant, 'model')?.includes('"hf_config"');
  return html`<section class="fields" aria-label="scenario">
    <fieldset><legend>Start from</legend>
      <div class="field long"><label for="tour">scenario</label><select id="tour" value=${variant.text === null ? variant.tour : ''}
          onChange=${event => put({ tour: event.target.value, text: null, file: null, set: [], latest: null })}>
        ${variant.text !== null && html`<option value="">${short(variant.file || 'the text that was dropped', 60)}</option>`}
        ${about().tour.map(one => html`<option value=${one.name}>${plain(one.name)}${one.title ? ` \u2013 ${short(one.title, 70)}` : ''}</option>`)}</select></div>
      ${asks && html`<p class="note">${short(asks, 200)}</p>`}
      ${learn && html`<p class="note">new to pipelines: <button id="learn" onClick=${learn}>what is a bubble?</button></p>`}
      <p class="note">or drop a scenario's YAML, or a model's config.json, on this page:
        <button onClick=${() => file.current.click()} id="choose-file">choose a file</button>
        <input ref=${file} id="file" type="file" accept=".yaml,.yml,.json" hidden onChange=${event => { drop(event.target.files[0]); event.target.value = ''; }}/></p>
      ${config && html`<p class="note">The model is that of config.json. <button class="small" onClick=${() => put({ ...changed(variant, 'model', ''), latest: null })}>take it back</button></p>`}
    </fieldset>
    ${groups.map(([name, paths]) => html`<fieldset><legend>${name}</legend>${paths.map(path =>
      html`<${Field} key=${path} path=${path} variant=${variant} scenario=${scenario} wrong=${wrongOf(path)} put=${put}/>`)}</fieldset>`)}
    <${Others} variant=${variant} put=${put} wrongs=${wrongs}/>
  </section>`;
}
