// Reports as a reader meets them, in a real browser. Every check is a fact that holds; the first that does
// not ends it. Screenshots of both schemes and sizes are kept beside the pages.

'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { chromium } = require('playwright-core');

const home = process.argv[2];
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const NODES_MAX = 3000; // in the page, however long the run
const FRAME_MS_MAX = 120; // half of all frames while scrolling

const facts = [];
const fact = (name, check) => facts.push({ name, check });

const open = async (context, name, hash = '') => {
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => problems.push(`console: ${message.text()}`));
  page.on('request', (request) => { if (!request.url().startsWith(`file://${home}/${name}.html`)) problems.push(`loads ${request.url()}`); });
  await page.goto(`file://${home}/${name}.html${hash}`);
  page.problems = problems;
  return page;
};
const texts = (page, selector) => page.locator(selector).allInnerTexts();
// A page answers to a new address and to scrolling with the next frame.
const settled = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
const chip = (page, text) => page.locator('.chip', { hasText: text }).first();

fact('everybody has a lane, children beside their parents', async (context) => {
  const page = await open(context, 'three');
  assert.deepEqual(await texts(page, '.head .name'), ['client', 'server', 'editor', '› researcher', '› writer', 'model']);
  return page;
});
fact('sends, model calls and hand-offs have arrows, there and back', async (context) => {
  const page = await open(context, 'three');
  for (const kind of ['call', 'turn', 'model', 'agent']) assert.ok(await page.locator(`.arrow.${kind}.out`).count() > 0, kind);
  assert.equal(await page.locator('.arrow.turn.back').count(), 2, 'researcher and writer answer the editor');
  return page;
});
fact('a click shows the details, Escape closes them', async (context) => {
  const page = await open(context, 'three');
  await chip(page, 'How many bees').click();
  const told = await page.locator('.details').innerText();
  for (const part of ['agent researcher', 'About 50,000.', 'turn_completed']) assert.ok(told.includes(part), `${part} in ${told}`);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.details').count(), 0);
  return page;
});
fact('a model is told by what it answered', async (context) => {
  const page = await open(context, 'three');
  const said = await texts(page, '.chip.model .text');
  assert.ok(said.includes('“About 50,000.”') && said.includes('calls send'), said.join(' | '));
  await chip(page, 'calls create ×2, send').click();
  const told = await page.locator('.details').innerText();
  for (const part of ['calls', 'nexus_create {"agent_id":"researcher"}', 'Write a report on bees.']) assert.ok(told.includes(part), `${part} in ${told}`);
  return page;
});
fact('an MCP server has a lane beside the model, and its tools lead there', async (context) => {
  const page = await open(context, 'mcp');
  const [names, kinds] = [await texts(page, '.head .name'), await texts(page, '.head .what')];
  const server = kinds.indexOf('mcp');
  assert.ok(server > kinds.indexOf('model'), kinds.join(', '));
  await page.locator('.chip.tool', { hasText: `${names[server]}: ` }).first().click();
  assert.match(await page.locator('.details').innerText(), new RegExp(`to\\s+${names[server]}`));
  return page;
});
fact('the keyboard goes everywhere', async (context) => {
  const page = await open(context, 'three');
  await page.locator('.chart').focus();
  await page.keyboard.press('Home');
  const at = () => page.locator('.chart').getAttribute('aria-activedescendant');
  const first = await at();
  await page.keyboard.press('ArrowRight');
  const beside = await at();
  await page.keyboard.press('ArrowDown');
  assert.equal(new Set([first, beside, await at()]).size, 3, 'each key leads on');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.details h2').innerText(), (await page.locator('.chip.selected .text').innerText()));
  await page.keyboard.press('End');
  assert.equal(await page.locator('.details h2').innerText(), 'has stopped', 'open details follow');
  return page;
});
fact('kinds and lanes can be left out', async (context) => {
  const page = await open(context, 'three');
  const tools = await page.locator('.chip.tool').count();
  assert.equal(tools, 4);
  await page.locator('[data-kind=tool]').click();
  assert.equal(await page.locator('.chip.tool').count(), 0);
  await page.locator('[data-kind=tool]').click();
  assert.equal(await page.locator('.chip.tool').count(), tools);
  await page.locator('details.lanes summary').click();
  await page.locator('.lanes label', { hasText: 'writer' }).locator('input').uncheck();
  assert.ok(!(await texts(page, '.head .name')).includes('› writer'));
  await page.getByLabel('Show all lanes').click();
  assert.equal(await page.locator('.head').count(), 6);
  return page;
});
fact('search marks what it finds and goes from one to the next', async (context) => {
  const page = await open(context, 'three');
  await page.keyboard.press('/');
  await page.keyboard.type('researcher');
  const found = Number((await page.locator('.search output').innerText()).split(' ')[0]);
  assert.ok(found >= 3, `${found} found`);
  assert.ok(await page.locator('.chip.faint').count() > 0, 'the rest is faint');
  await page.keyboard.press('Enter');
  const first = await page.locator('.chip.selected').getAttribute('id');
  await page.keyboard.press('Enter');
  assert.notEqual(await page.locator('.chip.selected').getAttribute('id'), first);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.chip.faint').count(), 0);
  return page;
});
fact('dark and light follow the system until the reader chooses', async (context) => {
  const page = await open(context, 'three');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await ground();
  assert.notEqual(light, dark);
  await page.locator('.scheme').click();
  assert.equal(await ground(), light, 'chosen light');
  await page.locator('.scheme').click();
  await page.emulateMedia({ colorScheme: 'light' });
  assert.equal(await ground(), dark, 'chosen dark');
  return page;
});
fact('texts can be read in both schemes', async (context) => {
  const page = await open(context, 'several', '#run-0');
  for (const [hash, colorScheme] of [['#run-0', 'light'], ['#run-0', 'dark'], ['#run-2', 'light'], ['#run-2', 'dark']]) {
    await page.emulateMedia({ colorScheme });
    await page.goto(`file://${home}/several.html${hash}`);
    await settled(page);
    await chip(page, 'send').click();
    for (const [what, ratio] of await page.evaluate(contrasts)) assert.ok(ratio >= 4.5, `${what} of ${hash} in ${colorScheme}: ${ratio.toFixed(2)}`);
  }
  return page;
});
fact('crashes cross all lanes, and idle time is told', async (context) => {
  const page = await open(context, 'several', '#run-2');
  assert.match(await page.locator('.heading, header.run h1').innerText(), /guide_crash/);
  const [fault, field] = [await page.locator('.fault.host').boundingBox(), await page.locator('.field').boundingBox()];
  assert.ok(fault.width >= field.width - 40, `${fault.width} of ${field.width}`);
  assert.match((await texts(page, '.fault .label'))[0], /crash of server/);
  assert.match((await texts(page, '.idle .label'))[0], /without news/);
  return page;
});
fact('a confirmation shows who decided it', async (context) => {
  const page = await open(context, 'several', '#run-4');
  assert.equal(await page.locator('.chip.confirmation').count(), 2);
  assert.equal(await page.locator('.arrow.confirmation').count(), 2);
  await chip(page, 'deny').click();
  assert.match(await page.locator('.details').innerText(), /decided by\s+alice/);
  return page;
});
fact('what failed comes first, with the command that repeats it', async (context) => {
  const page = await open(context, 'several');
  assert.deepEqual(await texts(page, '.runs .verdict'), ['failed', 'failed', 'passed', 'passed', 'passed', 'passed']);
  await page.locator('.runs tbody tr').first().click();
  const told = await page.locator('header.run').innerText();
  assert.ok(told.includes('nexus3-sim run tests/browser/hostile.toml --seed 0 --trace'), told);
  assert.ok((await page.locator('.problems pre').innerText()).includes('send scout'), 'what led to it');
  await page.locator('header.run button', { hasText: 'all runs' }).click();
  await page.locator('.runs').waitFor();
  return page;
});
fact('what is selected is never under its details', async (context) => {
  for (const width of [1280, 700]) {
    const page = await open(context, 'several', '#run-4');
    await page.setViewportSize({ width, height: 800 });
    await settled(page);
    await page.locator('.chart').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowDown', 'ArrowDown', 'End', 'Home', 'ArrowRight']) {
      await page.keyboard.press(key);
      const [chosen, panel] = [await page.locator('.chip.selected').boundingBox(), await page.locator('.details').boundingBox()];
      const apart = chosen.x + 30 <= panel.x || chosen.y + chosen.height <= panel.y;
      assert.ok(apart, `${key} at ${width}: ${JSON.stringify([chosen, panel])}`);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
  }
  return open(context, 'three');
});
fact('a sweep shows what failed before what it reached', async (context) => {
  const page = await open(context, 'sweep');
  assert.deepEqual(await texts(page, '.runs .verdict'), ['failed', 'failed']);
  const [table, cards] = [await page.locator('.runs').boundingBox(), await page.locator('.cards').boundingBox()];
  assert.ok(table.y < cards.y);
  assert.match(await page.locator('.cards').innerText(), /violations\s+2/);
  await page.locator('.runs tbody tr').first().click();
  await page.locator('.chart').waitFor();
  assert.ok(await page.locator('.chip').count() > 3, 'in full');
  assert.match(await page.locator('.problems').innerText(), /invariant window/);
  return page;
});
fact('what a model says stays text', async (context) => {
  const page = await open(context, 'several', '#run-0');
  for (const element of await page.locator('.chip.turn, .chip.call, .chip.tool').all()) {
    await element.click();
    await page.keyboard.press('Escape');
  }
  await chip(page, '<iframe').click();
  assert.ok((await page.locator('.details').innerText()).includes("<img src=x onerror='window.hacked = 2'>"));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('img, iframe, .details svg').count(), 0);
  return page;
});
fact('fifty agents fit: heads and times stay, children beside their parents', async (context) => {
  const page = await open(context, 'fifty');
  const names = await texts(page, '.head .name');
  assert.equal(names.length, 53);
  assert.deepEqual(names.slice(3, 7), ['top', '› lead-1', '› › w11', '› › w12']);
  await page.evaluate(() => { document.querySelector('.chart').scrollTo(3000, 1200); });
  await settled(page);
  assert.ok(await page.locator('.bar, .chip').count() > 0, 'what is there is drawn');
  const [chart, heads, gutter] = [await page.locator('.chart').boundingBox(), await page.locator('.heads').boundingBox(), await page.locator('.gutter').boundingBox()];
  assert.ok(Math.abs(heads.y - chart.y) < 1 && Math.abs(gutter.x - chart.x) < 1, 'both stick');
  return page;
});
fact('a run of thousands of items stays light and scrolls', async (context) => {
  const text = fs.readFileSync(`${home}/fifty.html`, 'utf8');
  const [before, rest] = text.split('id="report">');
  const json = rest.slice(0, rest.indexOf('</script>'));
  const report = JSON.parse(json);
  const run = report.runs[0];
  const later = (item, round) => ({ ...item, at: item.at + round * run.lasted, ...(item.end === undefined ? {} : { end: item.end + round * run.lasted }) });
  run.items = Array.from({ length: 16 }, (_, round) => run.items.map((item) => later(item, round))).flat();
  assert.ok(run.items.length > 5000, `${run.items.length} items`);
  run.lasted *= 16;
  fs.writeFileSync(`${home}/large.html`, `${before}id="report">${JSON.stringify(report).replaceAll('<', '\\u003c')}${rest.slice(json.length)}`);
  const page = await open(context, 'large');
  const { nodes, frame } = await page.evaluate(scrolled);
  assert.ok(nodes <= NODES_MAX, `${nodes} nodes`);
  assert.ok(frame <= FRAME_MS_MAX, `a frame takes ${frame.toFixed(0)} ms`);
  return page;
});
for (const width of [1280, 700]) {
  fact(`nothing is cut off at ${width} pixels`, async (context) => {
    const page = await open(context, 'several', '#run-0');
    await page.setViewportSize({ width, height: 800 });
    for (const hash of ['#run-0', '#run-4', '']) {
      await page.evaluate((next) => { location.hash = next; }, hash);
      await page.locator(hash === '' ? '.index' : '.chart').waitFor();
      await settled(page);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(over <= 0, `${hash || 'the index'} is ${over} pixels too wide`);
    }
    return page;
  });
}

// In the page: how well each kind of text stands out from what is behind it.
const contrasts = () => {
  const numbers = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const told = [];
  for (const selector of ['.chip .text', '.chip .glyph', '.time', '.head .name', '.head .what', '.verdict', '.failure', '.muted', '.kind', '.command code', '.about', '.fault .label', '.idle .label', '.details dt', '.details dd', '.tag']) {
    for (const element of document.querySelectorAll(selector)) {
      const [one, other] = [light(numbers(getComputedStyle(element).color)), light(ground(element))];
      told.push([selector, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)]);
    }
  }
  return told;
};

// In the page: scrolls from the top to the bottom; the most nodes there were, and how long half of the frames took.
const scrolled = async () => {
  const chart = document.querySelector('.chart');
  const frames = [];
  let nodes = 0;
  for (let step = 0; step < 60; step += 1) {
    const begun = performance.now();
    chart.scrollTop += 400;
    await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    frames.push((performance.now() - begun) / 2);
    nodes = Math.max(nodes, document.querySelectorAll('*').length);
  }
  chart.scrollTop = chart.scrollHeight;
  frames.sort((one, other) => one - other);
  return { nodes, frame: frames[Math.floor(frames.length / 2)] };
};

const shots = async (context) => {
  for (const [name, hash] of [['three', ''], ['fifty', ''], ['several', '#run-0'], ['several', '#run-2']]) {
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [1280, 700]) {
        const page = await open(context, name, hash);
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        await settled(page);
        const file = path.join(home, `${name}${hash.replace('#', '-')}-${colorScheme}-${width}.png`);
        await page.screenshot({ path: file });
        console.log(`kept   ${file}`);
        await page.close();
      }
    }
  }
};

(async () => {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'browser-'));
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: FLAGS, viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  let failed = 0;
  for (const { name, check } of facts) {
    try {
      const page = await check(context);
      assert.deepEqual(page.problems, [], 'a page loads nothing and complains of nothing');
      await page.close();
      console.log(`ok     ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}\n  ${error.message.split('\n').join('\n  ')}`);
    }
  }
  await shots(context);
  await context.close();
  fs.rmSync(profile, { recursive: true, force: true });
  console.log(`${facts.length - failed} facts hold, ${failed} do not`);
  process.exitCode = failed === 0 ? 0 : 1;
})();
