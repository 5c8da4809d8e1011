import { show, html } from './parts.js';
show(() => ({ title: 'app', page: html`<p>app</p>` }));
