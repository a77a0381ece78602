// What stands around the chart: all runs, one run's verdict, and the details of one item.

const ABOUT = {
  call: 'calls', turn: 'turns', model: 'models', tool: 'tools', confirmation: 'confirmations',
  agent: 'agents', batch: 'batches', live: 'live text', note: 'notes',
};

const FAILURES_MAX = 3; // of one run, where all runs are listed

const button = (text, label, act) => {
  const element = make('button', '', text);
  element.type = 'button';
  if (label) element.setAttribute('aria-label', label);
  element.addEventListener('click', act);
  return element;
};

const verdict = (run) => make('span', `verdict ${run.good ? 'good' : 'failed'}`, run.good ? 'passed' : 'failed');

const command = (text) => {
  const line = make('div', 'command');
  line.append(make('span', 'label', 'Again:'), make('code', '', text));
  return line;
};

// All runs, those that failed first.
const index = (report, toggle, open) => {
  const page = make('div', 'index');
  const line = make('div', 'line');
  line.append(make('h1', '', report.title), toggle);
  page.append(line);
  for (const note of report.left_out) page.append(make('p', 'note', note));
  const table = make('table', 'runs');
  const head = make('tr', '');
  for (const name of ['', 'run', 'seed', 'took', 'what it shows']) head.append(make('th', '', name));
  const body = make('tbody', '');
  report.runs.forEach((run, number) => {
    const row = make('tr', run.good ? '' : 'failed');
    const [first, name] = [make('td', ''), make('td', 'file')];
    first.append(verdict(run));
    const link = make('a', '', run.file);
    link.href = `#run-${number}`;
    name.append(link);
    const about = make('td', 'about', run.about);
    for (const failure of run.failures.slice(0, FAILURES_MAX)) about.append(make('p', 'failure', failure));
    const more = run.failures.length - FAILURES_MAX;
    if (more > 0) about.append(make('p', 'failure', `and ${more} more`));
    row.append(first, name, make('td', 'number', run.seed), make('td', 'number', duration(run.lasted)), about);
    row.addEventListener('click', () => open(number));
    body.append(row);
  });
  const top = make('thead', '');
  top.append(head);
  table.append(top, body);
  const frame = make('div', 'frame');
  frame.append(table);
  if (report.runs.length > 0) page.append(frame);
  page.append(summed(report.summary));
  return page;
};

// What came of all runs, a card for each group.
const summed = (rows) => {
  const cards = make('div', 'cards');
  for (const [group, told] of grouped(rows)) {
    const card = make('section', 'card');
    const list = make('dl', '');
    for (const row of told) list.append(make('dt', '', row.name), make('dd', '', row.told));
    card.append(make('h2', '', group), list);
    cards.append(card);
  }
  return cards;
};

const grouped = (rows) => {
  const groups = new Map();
  for (const row of rows) groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  return groups;
};

// What one run is, and why it failed.
const heading = (report, run, toggle, back) => {
  const head = make('header', 'run');
  const line = make('div', 'line');
  if (report.runs.length > 1) line.append(button('← all runs', '', back));
  line.append(verdict(run), make('h1', '', run.file), make('span', 'muted', `seed ${run.seed}, ${duration(run.lasted)} of virtual time`), make('span', 'space'), toggle);
  head.append(line, make('p', 'about', run.about));
  if (run.items_left_out > 0) head.append(make('p', 'note', `${run.items_left_out} items are left out of this page; the command below shows them all.`));
  if (run.good && run.items_left_out === 0) return head;
  const problems = make('div', 'problems');
  for (const failure of run.failures) problems.append(make('p', 'failure', failure));
  problems.append(command(run.again));
  if (run.led_to_it.length > 0) {
    const led = make('details', '');
    led.open = !run.good;
    led.append(make('summary', '', `What led to it: the last ${run.led_to_it.length} lines`), make('pre', '', run.led_to_it.join('\n')));
    problems.append(led);
  }
  head.append(problems);
  return head;
};

// Everything about one item.
const details = (run, item, close) => {
  const panel = make('aside', 'details');
  panel.setAttribute('aria-label', 'Details');
  const top = make('div', 'top');
  top.append(make('span', `tag ${item.kind}${item.bad ? ' bad' : ''}`, item.kind), make('h2', '', item.title), button('×', 'Close the details', close));
  const list = make('dl', '');
  const add = (name, text) => list.append(make('dt', '', name), make('dd', '', text));
  const lane = run.lanes[item.lane];
  add('who', `${lane.kind} ${lane.name}`);
  const ended = item.end === undefined ? (item.open ? ', and had not ended' : '') : ` to ${seconds(item.end)} s (${duration(item.end - item.at)})`;
  add('when', `${seconds(item.at)} s${ended}`);
  if (item.to !== undefined) add('to', run.lanes[item.to].name);
  if (item.from !== undefined) add('from', run.lanes[item.from].name);
  for (const [name, text] of item.more ?? []) {
    list.append(make('dt', '', name), make('dd', text.includes('\n') || text.length > 60 ? 'long' : '', text));
  }
  panel.append(top, list);
  return panel;
};
