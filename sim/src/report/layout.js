// Where everything is: lanes side by side, time downward. Time that nothing fills is left out, and
// whatever happens in one lane has its own row. It draws nothing.

const ROW = 24; // of a label, with the room below it
const CHIP = 20;
const GUTTER = 76;
const HEAD = 44;
const LANE_MIN = 160;
const LANE_MAX = 280;
const FAULT_ROW = 30;
const IDLE_ROW = 36;
const IDLE_MICROS = 1_500_000; // what is longer is told, not shown
const BUCKET = 512; // pixels

// A wait of a millisecond is seen, one of a second is not a thousand times as long.
const gap = (micros) => Math.min(22, 3 + 2.2 * Math.log2(1 + micros / 1000));

const layout = (run, shown, width) => {
  const lanes = run.lanes.map((lane, index) => ({ ...lane, index })).filter((lane) => shown.lanes.has(lane.index));
  const room = Math.max(1, lanes.length);
  const laneWidth = Math.floor(Math.min(LANE_MAX, Math.max(LANE_MIN, (width - GUTTER - 2) / room)));
  const column = new Map(lanes.map((lane, place) => [lane.index, place]));
  const items = [];
  run.items.forEach((item, index) => {
    if (column.has(item.lane) && shown.kinds.has(item.kind)) items.push({ item, index, top: 0, bottom: 0, slot: 0 });
  });
  const faults = run.faults.map((fault) => ({ fault, top: 0, bottom: 0 }));
  const rows = place(items, faults, run.lasted);
  slots(items);
  const placed = {
    run, lanes, laneWidth, column, items, faults,
    times: rows.times, idle: rows.idle,
    width: GUTTER + laneWidth * lanes.length,
    height: rows.height,
    buckets: [],
    byIndex: new Map(items.map((entry, order) => [entry.index, order])),
  };
  items.forEach((entry, order) => {
    for (let at = Math.floor(entry.top / BUCKET); at <= Math.floor(entry.bottom / BUCKET); at += 1) {
      (placed.buckets[at] ??= []).push(order);
    }
  });
  return placed;
};

// Gives every beginning and every end its height, in the order of time.
const place = (items, faults, lasted) => {
  const marks = [];
  items.forEach((entry, order) => {
    const { item } = entry;
    marks.push({ at: item.at, order, rank: 1, entry, begins: true });
    if (item.end !== undefined) marks.push({ at: item.end, order, rank: item.end > item.at ? 0 : 2, entry });
    else if (item.open) marks.push({ at: lasted, order, rank: 3, entry });
  });
  faults.forEach((band, order) => {
    marks.push({ at: band.fault.at, order, rank: -1, band, begins: true });
    if (band.fault.end !== undefined) marks.push({ at: band.fault.end, order, rank: -2, band });
  });
  marks.sort((one, other) => one.at - other.at || one.rank - other.rank || one.order - other.order);
  const bottoms = new Map();
  const times = [];
  const idle = [];
  let y = 10;
  let last = marks.length > 0 ? marks[0].at : 0;
  for (const mark of marks) {
    const passed = mark.at - last;
    if (passed > IDLE_MICROS) {
      idle.push({ y: y + ROW, micros: passed });
      y += ROW + IDLE_ROW;
    } else if (passed > 0) y += gap(passed);
    last = mark.at;
    if (mark.band) {
      if (mark.begins) {
        y = Math.max(y, ...bottoms.values(), 0);
        mark.band.top = y;
        mark.band.bottom = y + FAULT_ROW;
        y += FAULT_ROW;
      } else mark.band.bottom = Math.max(mark.band.bottom, y);
    } else if (mark.begins) {
      const lane = mark.entry.item.lane;
      y = Math.max(y, bottoms.get(lane) ?? 0);
      mark.entry.top = y;
      mark.entry.bottom = y + CHIP;
      bottoms.set(lane, y + ROW);
    } else mark.entry.bottom = Math.max(mark.entry.bottom, y);
    const told = times[times.length - 1];
    if (!told || (y - told.y >= CHIP && mark.at > told.at)) times.push({ y, at: mark.at });
  }
  return { times, idle, height: Math.ceil(Math.max(y, ...bottoms.values(), 0) + 48) };
};

// What goes on at the same time in one lane stands side by side.
const slots = (items) => {
  const open = new Map();
  for (const entry of items) {
    const lane = (open.get(entry.item.lane) ?? []).map((other) => (other && other.bottom > entry.top ? other : undefined));
    let slot = 0;
    while (lane[slot]) slot += 1;
    entry.slot = Math.min(slot, 4);
    if (entry.bottom > entry.top + CHIP) lane[slot] = entry;
    open.set(entry.item.lane, lane);
  }
};
