/**
 * A small writer of plots as SVG: one or more panels side by side, each with categories on the x axis and
 * one line with points, or one bar a category, for each series. Enough to put our figures beside the paper's.
 *
 *     +-- title ------------------------------+
 *     | panel title          panel title      |
 *     | y |    o--o          y |  o           |
 *     |   | x--x               | x            |
 *     |   +--------            +-------       |
 *     |   legend               legend         |
 *     | note                                  |
 *     +---------------------------------------+
 */

export interface Series {
  readonly name: string;
  /** One value a category; undefined where there is none. */
  readonly values: readonly (number | undefined)[];
  /** Drawn broken: figures of others. */
  readonly dashed?: boolean;
}

export interface Panel {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly categories: readonly string[];
  readonly series: readonly Series[];
  /** Logarithmic y axis. */
  readonly logarithmic?: boolean;
  /** Where categories stand on the x axis, to scale; else they stand at equal distances. */
  readonly at?: readonly number[];
  /** Many categories: only some are named, and points carry no figures. */
  readonly sparse?: boolean;
  /** A line before this category: something happened here. */
  readonly mark?: number;
  /** Bars from 0, for categories that are no steps of one quantity; the axis is linear then. */
  readonly bars?: boolean;
}

export interface Plot {
  readonly title: string;
  readonly note: string;
  readonly panels: readonly Panel[];
}

const WIDTH = 480;
const HEIGHT = 300;
const LEFT = 80;
const TOP = 70;
const LEGEND_LINE = 18;
const NOTE_LINE = 15;
/** So many names fit under the axis of a sparse panel. */
const SPARSE_NAMES = 8;
/** Width of a character of the note, on the safe side for any sans-serif. */
const NOTE_CHARACTER = 6.2;
/** Figures of one category stand right of their points and a little above, moved apart where they would lie on one another. */
const FIGURE_HEIGHT = 11;
const FIGURE_RIGHT = 7;
/** Of a panel to scale, between its edges and its first and last point. */
const MARGIN = 45;
const COLOURS = ['#0b5fa5', '#c2410c', '#15803d', '#7e22ce', '#525252', '#b91c1c'];

export function plotSvg(plot: Plot): string {
  const legend = Math.max(...plot.panels.map((panel) => panel.series.length)) * LEGEND_LINE;
  const width = plot.panels.length * (WIDTH + LEFT) + 40;
  const note = wrapped(plot.note, Math.floor((width - 40) / NOTE_CHARACTER));
  const height = TOP + HEIGHT + 60 + legend + 25 + note.length * NOTE_LINE;
  const panels = plot.panels.map((panel, index) => `<g transform="translate(${LEFT + index * (WIDTH + LEFT)},${TOP})">${drawPanel(panel)}</g>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    text(20, 28, plot.title, 'font-size="17" font-weight="bold"'),
    ...panels,
    ...note.map((line, index) => text(20, height - 14 - (note.length - 1 - index) * NOTE_LINE, line, 'fill="#555" font-size="11"')),
    '</svg>',
    '',
  ].join('\n');
}

interface Scale {
  readonly marks: readonly number[];
  y(value: number): number;
}

function drawPanel(panel: Panel): string {
  const values = panel.series.flatMap((series) => series.values).filter((value) => value !== undefined);
  const scale = panel.logarithmic === true && panel.bars !== true ? logarithmicScale(values) : linearScale(values);
  const x = placesOf(panel);
  const parts = [
    text(0, -14, panel.title, 'font-size="14"'),
    text(WIDTH / 2, HEIGHT + 38, panel.xLabel, 'text-anchor="middle"'),
    `<g transform="translate(-62,${HEIGHT / 2}) rotate(-90)">${text(0, 0, panel.yLabel, 'text-anchor="middle"')}</g>`,
  ];
  for (const mark of scale.marks) {
    const y = scale.y(mark).toFixed(1);
    parts.push(`<line x1="0" x2="${WIDTH}" y1="${y}" y2="${y}" stroke="#ddd"/>`, text(-6, Number(y) + 4, short(mark), 'text-anchor="end"'));
  }
  const step = panel.sparse === true ? Math.ceil(panel.categories.length / SPARSE_NAMES) : 1;
  for (const [index, name] of panel.categories.entries()) if (index % step === 0) parts.push(text(x(index), HEIGHT + 18, name, 'text-anchor="middle"'));
  if (panel.mark !== undefined) {
    const at = (x(panel.mark) - WIDTH / panel.categories.length / 2).toFixed(1);
    parts.push(`<line x1="${at}" x2="${at}" y1="0" y2="${HEIGHT}" stroke="#b91c1c" stroke-width="1.5" stroke-dasharray="3 3"/>`, text(Number(at) + 4, 10, 'fault', 'fill="#b91c1c" font-size="11"'));
  }
  for (const [index, series] of panel.series.entries()) parts.push(panel.bars === true ? drawBars(series, index, panel, x, scale) : drawSeries(series, index, panel, x, scale));
  // On top of all lines.
  if (panel.bars !== true && panel.sparse !== true) for (const category of panel.categories.keys()) parts.push(...drawFigures(panel, category, x(category), scale));
  return parts.join('\n');
}

/** x of a category. */
function placesOf(panel: Panel): (category: number) => number {
  const at = panel.at;
  if (at === undefined) return (category) => ((category + 0.5) * WIDTH) / panel.categories.length;
  const [low, high] = [Math.min(...at), Math.max(...at)];
  return (category) => MARGIN + (high === low ? 0 : (((at[category] ?? low) - low) / (high - low)) * (WIDTH - 2 * MARGIN));
}

function drawSeries(series: Series, index: number, panel: Panel, x: (category: number) => number, scale: Scale): string {
  const colour = colourOf(index);
  const dash = series.dashed === true ? ' stroke-dasharray="6 4"' : '';
  const points: string[] = [];
  const parts: string[] = [];
  for (const [category, value] of series.values.entries()) {
    if (value === undefined) continue;
    const [cx, cy] = [x(category).toFixed(1), scale.y(value).toFixed(1)];
    points.push(`${cx},${cy}`);
    parts.push(`<circle cx="${cx}" cy="${cy}" r="${panel.sparse === true ? 1.5 : 3.5}" fill="${colour}"/>`);
  }
  const y = HEIGHT + 60 + index * LEGEND_LINE;
  parts.push(
    `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`,
    `<line x1="0" x2="28" y1="${y - 4}" y2="${y - 4}" stroke="${colour}" stroke-width="2"${dash}/>`,
    text(36, y, series.name),
  );
  return parts.join('\n');
}

function colourOf(series: number): string {
  return COLOURS[series % COLOURS.length] ?? '#000';
}

/** The values of all series at one category. */
function drawFigures(panel: Panel, category: number, x: number, scale: Scale): string[] {
  const figures = panel.series.flatMap(({ values }, index) => {
    const value = values[category];
    return value === undefined ? [] : [{ value, index, y: scale.y(value) }];
  }).sort((one, other) => one.y - other.y);
  const places = apart(figures.map(({ y }) => y), FIGURE_HEIGHT);
  return figures.map(({ value, index }, nth) => text(x + FIGURE_RIGHT, (places[nth] ?? 0) - 3, short(value), `fill="${colourOf(index)}" font-size="10" stroke="#fff" stroke-width="3" paint-order="stroke"`));
}

/** Places at least `distance` apart, in the order of those wanted: neighbours that are too near share their middle. */
export function apart(wanted: readonly number[], distance: number): number[] {
  // Each group: the first place it would like, and how many stand in it.
  const groups: { first: number; count: number }[] = [];
  for (const place of wanted) {
    let group = { first: place, count: 1 };
    for (let before = groups.at(-1); before !== undefined && before.first + before.count * distance > group.first; before = groups.at(-1)) {
      const count = before.count + group.count;
      group = { first: (before.first * before.count + (group.first - before.count * distance) * group.count) / count, count };
      groups.pop();
    }
    groups.push(group);
  }
  return groups.flatMap(({ first, count }) => Array.from({ length: count }, (_none, nth) => first + nth * distance));
}

function drawBars(series: Series, index: number, panel: Panel, x: (category: number) => number, scale: Scale): string {
  const colour = colourOf(index);
  const width = (WIDTH / panel.categories.length) * 0.7 / panel.series.length;
  const parts: string[] = [];
  for (const [category, value] of series.values.entries()) {
    if (value === undefined) continue;
    const left = x(category) + (index - panel.series.length / 2) * width;
    const top = scale.y(value);
    parts.push(
      `<rect x="${left.toFixed(1)}" y="${top.toFixed(1)}" width="${(width - 2).toFixed(1)}" height="${(HEIGHT - top).toFixed(1)}" fill="${colour}"/>`,
      text(left + width / 2, top - 5, short(value), `fill="${colour}" font-size="10" text-anchor="middle"`),
    );
  }
  const y = HEIGHT + 60 + index * LEGEND_LINE;
  parts.push(`<rect x="0" y="${y - 10}" width="28" height="10" fill="${colour}"/>`, text(36, y, series.name));
  return parts.join('\n');
}

/** Lines of at most `characters`, cut between words. */
function wrapped(note: string, characters: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of note.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > characters) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** From 0 to a round number above the largest value, in about five steps. */
function linearScale(values: readonly number[]): Scale {
  const largest = Math.max(1e-9, ...values);
  const magnitude = 10 ** Math.floor(Math.log10(largest / 5));
  const step = [1, 2, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate * 5 >= largest) ?? magnitude * 10;
  const top = Math.ceil(largest / step) * step;
  const marks: number[] = [];
  for (let mark = 0; mark <= top + step / 2; mark += step) marks.push(mark);
  return { marks, y: (value) => HEIGHT * (1 - value / top) };
}

/** Whole powers of ten around the values. */
function logarithmicScale(values: readonly number[]): Scale {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive))));
  const marks: number[] = [];
  for (let power = low; power <= high; power++) marks.push(10 ** power);
  return { marks, y: (value) => HEIGHT * (1 - (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) };
}

function short(value: number): string {
  if (value >= 10_000_000) return `${Math.round(value / 1e6)}M`;
  if (value >= 1_000_000) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 10_000) return `${Math.round(value / 1000)}k`;
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value >= 1 ? value.toFixed(1) : value.toPrecision(2);
}

function text(x: number, y: number, content: string, attributes = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escaped}</text>`;
}
