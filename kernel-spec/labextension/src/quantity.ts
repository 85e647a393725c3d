/** Cells of a table as numbers: `1 024`, `86.7 MiB`, `3.2 %`, `3 min 05 s`, `5e-5`, `inf`. */

const BINARY = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const DECIMAL = ['kB', 'MB', 'GB', 'TB', 'PB'];

/** What a unit multiplies a number with. Units that measure the same thing are in one group. */
const UNITS = new Map<string, { group: string; factor: number }>([
  ['B', { group: 'bytes', factor: 1 }],
  ...BINARY.map((name, at) => [name, { group: 'bytes', factor: 1024 ** (at + 1) }] as const),
  ...DECIMAL.map((name, at) => [name, { group: 'bytes', factor: 1000 ** (at + 1) }] as const),
  ['ns', { group: 'seconds', factor: 1e-9 }],
  ['µs', { group: 'seconds', factor: 1e-6 }],
  ['ms', { group: 'seconds', factor: 1e-3 }],
  ['s', { group: 'seconds', factor: 1 }],
  ['min', { group: 'seconds', factor: 60 }],
  ['h', { group: 'seconds', factor: 3600 }],
  // Counts: `22.7 M`.
  ['', { group: 'count', factor: 1 }],
  ['k', { group: 'count', factor: 1e3 }],
  ['M', { group: 'count', factor: 1e6 }],
  ['G', { group: 'count', factor: 1e9 }]
]);

/** A number, in groups of three digits or not, and what is behind it. */
const PART = /^[<~≈±]?\s*([-+−]?)(\d{1,3}(?:[ \u00a0\u202f\u2009]\d{3})+|\d*)(\.\d+)?(e[-+]?\d+)?\s*/iu;
const DURATION = /^(?:(\d+) h )?(?:(\d+) min)(?: (\d+) s)?$/u;
const WORDS = new Map([
  ['inf', Infinity],
  ['∞', Infinity],
  ['-inf', -Infinity],
  ['−∞', -Infinity]
]);

/** What stands for a missing value. It is sorted after all values. */
const MISSING = new Set(['', '–', '-', '—', 'nan', 'NaN', 'undefined', 'None']);

export interface Quantity {
  value: number;
  /** Numbers of different groups are not compared. */
  group: string;
}

export function isMissing(text: string): boolean {
  return MISSING.has(text);
}

/** The number that a text begins with and its unit; null for other texts. */
export function quantity(text: string): Quantity | null {
  const word = WORDS.get(text.toLowerCase());
  if (word !== undefined) {
    return { value: word, group: 'count' };
  }
  const time = DURATION.exec(text);
  if (time) {
    const [hours, minutes, seconds] = time.slice(1).map(each => Number(each ?? 0));
    return { value: 3600 * hours + 60 * minutes + seconds, group: 'seconds' };
  }
  const found = PART.exec(text);
  if (!found || (!found[2] && !found[3])) {
    return null;
  }
  const [all, sign, whole, fraction, power] = found;
  const digits = `${whole.replace(/\D/gu, '') || '0'}${fraction ?? ''}${power ?? ''}`;
  const value = Number(digits) * (sign === '' || sign === '+' ? 1 : -1);
  const name = text.slice(all.length);
  const unit = UNITS.get(name);
  return unit ? { value: value * unit.factor, group: unit.group } : { value, group: name };
}
