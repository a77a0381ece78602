// Draws what is visible of a run, and nothing else: a run of thousands of items stays light. Every text
// is put in as text.

const GLYPHS = { call: '→', turn: '■', model: '◆', tool: '▸', confirmation: '?', agent: '+', batch: '≡', live: '~', note: '·' };
const MARGIN = 400; // what is drawn beyond the edges, in pixels
const LANES_CALM = 12; // with more, arrows to what everybody uses are short until they are looked at
const SVG = document.getElementById('pen').namespaceURI;

const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const put = (element, left, top, width, height) => {
  element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  if (width !== undefined) element.style.width = `${Math.round(width)}px`;
  if (height !== undefined) element.style.height = `${Math.round(height)}px`;
  return element;
};

const shape = (name, attributes) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const seconds = (micros) => `${(micros / 1e6).toFixed(3)}`;
const duration = (micros) => {
  if (micros < 1e6) return `${Math.round(micros / 1000)} ms`;
  if (micros < 120e6) return `${(micros / 1e6).toFixed(2)} s`;
  return `${(micros / 60e6).toFixed(1)} min`;
};

const left = (placed, lane) => GUTTER + placed.column.get(lane) * placed.laneWidth;
const chipLeft = (placed, entry) => left(placed, entry.item.lane) + 8 + entry.slot * 6;

// The scroller with everything in it. `state` says what is selected and found.
const chart = (state) => {
  const scroller = make('div', 'chart');
  scroller.tabIndex = 0;
  scroller.setAttribute('role', 'listbox');
  scroller.setAttribute('aria-label', 'What happened, time downward');
  const field = make('div', 'field');
  const heads = make('div', 'heads');
  const gutter = make('div', 'gutter');
  const bands = make('div', 'layer bands');
  const arrows = shape('svg', { class: 'layer arrows', 'aria-hidden': 'true' });
  const layer = make('div', 'layer');
  field.append(heads, gutter, bands, arrows, layer);
  scroller.append(field);
  let placed;
  let drawn;
  let covered = { right: 0, bottom: 0 }; // by what lies above the chart

  const stretch = () => {
    field.style.width = `${placed.width + covered.right}px`;
    field.style.height = `${placed.height + HEAD + covered.bottom}px`;
  };

  // Says how much is covered, so that everything can still be scrolled to.
  const cover = (next) => {
    covered = next;
    stretch();
  };

  const show = (next) => {
    placed = next;
    drawn = undefined;
    // A short run still fills the view.
    placed.height = Math.max(placed.height, scroller.clientHeight - HEAD);
    stretch();
    gutter.style.height = `${placed.height}px`;
    heads.replaceChildren(make('div', 'corner', 'seconds'));
    for (const lane of placed.lanes) {
      const head = make('div', `head ${lane.kind}`);
      head.style.width = `${placed.laneWidth}px`;
      head.title = `${lane.kind} ${lane.name}`;
      const name = make('span', 'name', lane.depth > 0 ? `${'› '.repeat(Math.min(lane.depth, 4))}${lane.name}` : lane.name);
      head.append(name, make('span', 'what', lane.kind));
      heads.append(head);
    }
    draw();
  };

  const draw = () => {
    if (!placed) return;
    const view = { top: scroller.scrollTop, left: scroller.scrollLeft, height: scroller.clientHeight, width: scroller.clientWidth };
    const fits = drawn && drawn.top <= Math.max(0, view.top - MARGIN / 3) && drawn.bottom >= Math.min(placed.height, view.top + view.height + MARGIN / 3)
      && drawn.left <= Math.max(0, view.left - MARGIN / 3) && drawn.right >= Math.min(placed.width, view.left + view.width + MARGIN / 3);
    if (fits) return;
    drawn = { top: Math.max(0, view.top - MARGIN), bottom: view.top + view.height + MARGIN, left: Math.max(0, view.left - MARGIN), right: view.left + view.width + MARGIN };
    const orders = visible(placed, drawn);
    drawBands(placed, drawn, bands, gutter);
    const nodes = [];
    for (const lane of placed.lanes) {
      const x = left(placed, lane.index) + placed.laneWidth;
      if (x >= drawn.left && x <= drawn.right) nodes.push(put(make('div', 'line'), x, drawn.top, undefined, Math.min(drawn.bottom, placed.height) - drawn.top));
    }
    for (const order of orders) drawItem(placed, drawn, state, placed.items[order], nodes);
    layer.replaceChildren(...nodes);
    drawArrows(placed, drawn, state, orders, arrows);
    const selected = document.getElementById(`item-${state.selected}`);
    if (selected) scroller.setAttribute('aria-activedescendant', selected.id);
    else scroller.removeAttribute('aria-activedescendant');
  };

  const redraw = () => {
    drawn = undefined;
    draw();
  };

  // Brings an item into the view.
  const reveal = (index) => {
    const entry = placed.items[placed.byIndex.get(index)];
    if (!entry) return;
    const x = left(placed, entry.item.lane);
    const top = entry.top;
    const [width, height] = [scroller.clientWidth - covered.right, scroller.clientHeight - covered.bottom];
    if (top < scroller.scrollTop + 8 || top + HEAD + ROW * 2 > scroller.scrollTop + height) {
      scroller.scrollTop = Math.max(0, top - (height - HEAD) / 3);
    }
    if (x < scroller.scrollLeft + GUTTER) scroller.scrollLeft = Math.max(0, x - GUTTER);
    else if (x + placed.laneWidth > scroller.scrollLeft + width) scroller.scrollLeft = x + placed.laneWidth - width;
    redraw();
  };

  let waiting = false;
  scroller.addEventListener('scroll', () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }, { passive: true });
  return { scroller, show, redraw, reveal, cover, placed: () => placed };
};

const visible = (placed, drawn) => {
  const orders = new Set();
  for (let at = Math.floor(drawn.top / BUCKET); at <= Math.floor(drawn.bottom / BUCKET); at += 1) {
    for (const order of placed.buckets[at] ?? []) orders.add(order);
  }
  return [...orders].sort((one, other) => one - other);
};

// Without a transform, so that its label can lie above everything else.
const across = (element, top, width, height) => {
  element.style.top = `${Math.round(top)}px`;
  element.style.width = `${width}px`;
  element.style.height = `${Math.round(height)}px`;
  return element;
};

const drawBands = (placed, drawn, bands, gutter) => {
  const nodes = [];
  for (const { fault, top, bottom } of placed.faults) {
    if (bottom < drawn.top || top > drawn.bottom) continue;
    const band = across(make('div', `fault ${fault.reach}`), top, placed.width, Math.max(bottom - top, FAULT_ROW));
    const lasted = fault.end === undefined ? '' : `, ${duration(fault.end - fault.at)}`;
    band.append(make('span', 'label', `${fault.reach === 'host' ? '✕' : '!'} ${fault.name}${lasted}`));
    nodes.push(band);
  }
  for (const { y, micros } of placed.idle) {
    if (y + IDLE_ROW < drawn.top || y > drawn.bottom) continue;
    const idle = across(make('div', 'idle'), y, placed.width, IDLE_ROW - 8);
    idle.append(make('span', 'label', `${duration(micros)} without news`));
    nodes.push(idle);
  }
  bands.replaceChildren(...nodes);
  const times = placed.times.filter(({ y }) => y >= drawn.top - ROW && y <= drawn.bottom);
  gutter.replaceChildren(...times.map(({ y, at }) => put(make('div', 'time', seconds(at)), 0, y)));
};

const drawItem = (placed, drawn, state, entry, nodes) => {
  const { item, index, top, bottom } = entry;
  const x = left(placed, item.lane);
  if (x + placed.laneWidth < drawn.left || x > drawn.right) return;
  const at = chipLeft(placed, entry);
  const found = state.found && !state.found.has(index) ? ' faint' : '';
  if (bottom > top + CHIP) {
    const from = Math.max(top + CHIP / 2, drawn.top - 8);
    const bar = make('div', `bar ${item.kind}${item.bad ? ' bad' : ''}${item.open ? ' open' : ''}${found}`);
    bar.title = item.title;
    bar.dataset.index = index;
    nodes.push(put(bar, at, from, undefined, Math.min(bottom, drawn.bottom + 8) - from));
  }
  const chip = make('div', `chip ${item.kind}${item.bad ? ' bad' : ''}${found}${state.selected === index ? ' selected' : ''}`);
  chip.id = `item-${index}`;
  chip.dataset.index = index;
  chip.setAttribute('role', 'option');
  chip.setAttribute('aria-selected', String(state.selected === index));
  chip.append(make('span', 'glyph', item.bad ? '✕' : GLYPHS[item.kind]), make('span', 'text', item.title));
  chip.title = item.title;
  put(chip, at, top);
  chip.style.maxWidth = `${Math.max(40, x + placed.laneWidth - at - 8)}px`;
  nodes.push(chip);
};

const drawArrows = (placed, drawn, state, orders, svg) => {
  const height = Math.min(drawn.bottom, placed.height) - drawn.top;
  const width = Math.min(drawn.right, placed.width) - drawn.left;
  svg.setAttribute('width', Math.max(0, width));
  svg.setAttribute('height', Math.max(0, height));
  put(svg, drawn.left, drawn.top);
  const nodes = [];
  const calm = placed.lanes.length <= LANES_CALM;
  const draw = (entry, fromX, toX, y, style) => {
    if (Math.max(fromX, toX) < drawn.left || Math.min(fromX, toX) > drawn.right || y < drawn.top || y > drawn.bottom) return;
    const chosen = state.selected === entry.index;
    const faint = state.found && !state.found.has(entry.index);
    const [x1, x2, at] = [fromX - drawn.left, toX - drawn.left, Math.round(y - drawn.top) + 0.5];
    const group = shape('g', { class: `arrow ${entry.item.kind} ${style}${entry.item.bad ? ' bad' : ''}${chosen ? ' selected' : ''}${faint ? ' faint' : ''}` });
    const ahead = x2 > x1 ? -1 : 1;
    group.append(shape('line', { x1, y1: at, x2, y2: at }), shape('path', { d: `M${x2} ${at}l${6 * ahead} -3.5v7z` }));
    nodes.push(group);
  };
  const axis = (lane) => left(placed, lane) + 10;
  for (const order of orders) {
    const entry = placed.items[order];
    const { item } = entry;
    const [start, end] = [entry.top + CHIP / 2, entry.bottom];
    const own = chipLeft(placed, entry) + 2;
    const common = item.to !== undefined && ['model', 'mcp', 'machine'].includes(placed.run.lanes[item.to].kind);
    const short = common && (!placed.column.has(item.to) || (!calm && state.selected !== entry.index));
    if (item.to !== undefined && (short || placed.column.has(item.to))) {
      const target = short ? left(placed, item.lane) + placed.laneWidth - 1 : axis(item.to);
      draw(entry, own, target, start, 'out');
      if (item.end !== undefined && !short) draw(entry, axis(item.to), own, end, 'back');
    }
    if (item.from !== undefined && placed.column.has(item.from)) {
      const rightward = placed.column.get(item.from) < placed.column.get(item.lane);
      const edge = left(placed, item.lane) + placed.laneWidth - 8;
      draw(entry, axis(item.from), rightward ? own - 2 : edge, start, 'out');
      if (item.kind === 'turn' && item.end !== undefined) draw(entry, own, axis(item.from), end, 'back');
    }
    if (item.by !== undefined && placed.column.has(item.by)) draw(entry, axis(item.by), own, end, 'out');
  }
  svg.replaceChildren(...nodes);
};
