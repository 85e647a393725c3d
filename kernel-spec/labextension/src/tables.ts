/**
 * Tables of data in the outputs of a notebook: a press on the heading of a column sorts the rows, and long tables are shown in
 * pages. The tables are those that the kernel marks with a class (`data_table` in `src/render/src/html.rs`). Only the page
 * changes: what the notebook stores stays as the kernel wrote it.
 */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import { button, watch } from './outputs';
import { isMissing, quantity } from './quantity';

const TABLES = 'table.stratoscope-rows';

/** Rows on a page. A table that has no more is shown whole. */
const PAGE = 20;

type Direction = 'ascending' | 'descending';

/** A row that is sorted, with the rows below it that belong to it. */
interface Item {
  rows: HTMLTableRowElement[];
  cells: string[];
}

class DataTable {
  constructor(
    private readonly table: HTMLTableElement,
    private readonly headings: HTMLTableCellElement[],
    rows: HTMLTableRowElement[]
  ) {
    for (const row of rows) {
      const last = this.items[this.items.length - 1];
      // A row of another width, such as a note, stays below the row that it follows.
      if (last && row.cells.length !== headings.length) {
        last.rows.push(row);
      } else {
        this.items.push({ rows: [row], cells: [...row.cells].map(cell => (cell.textContent ?? '').trim()) });
      }
    }
    this.body = rows[0].parentElement as HTMLElement;
    this.order = this.items;
    headings.forEach((heading, column) => this.addButton(heading, column));
    if (this.items.length > PAGE) {
      this.addPages();
    }
  }

  private addButton(heading: HTMLTableCellElement, column: number): void {
    // A column without a title holds pictures.
    if (!heading.textContent?.trim()) {
      return;
    }
    const sort = button('', null, () => this.press(column));
    sort.classList.add('stratoscope-sort');
    sort.title = 'Sort the rows by this column';
    sort.append(...heading.childNodes);
    heading.append(sort);
  }

  private press(column: number): void {
    const next: Record<string, Direction | null> = { ascending: 'descending', descending: null };
    this.direction = column === this.column && this.direction ? next[this.direction] : 'ascending';
    this.column = column;
    this.order = this.direction ? sorted(this.items, column, this.direction) : this.items;
    this.headings.forEach((heading, at) => {
      if (at === column && this.direction) {
        heading.setAttribute('aria-sort', this.direction);
      } else {
        heading.removeAttribute('aria-sort');
      }
    });
    this.body.append(...this.order.flatMap(item => item.rows));
    this.page = 0;
    this.show();
  }

  private addPages(): void {
    const turn = (text: string, label: string, press: () => void) => {
      const made = button(text, label, () => {
        press();
        this.show();
      });
      made.classList.add('stratoscope-page');
      return made;
    };
    const previous = turn('‹', 'Previous page', () => this.page--);
    const next = turn('›', 'Next page', () => this.page++);
    const all = turn('all rows', 'All rows', () => {
      this.isWhole = !this.isWhole;
      this.page = 0;
    });
    const range = document.createElement('span');
    range.setAttribute('role', 'status');
    const bar = document.createElement('div');
    bar.className = 'stratoscope-pages';
    bar.append(previous, range, next, all);
    this.table.after(bar);
    this.pages = { previous, next, all, range };
    this.show();
  }

  /** Hides the rows of the other pages. */
  private show(): void {
    if (!this.pages) {
      return;
    }
    const { previous, next, all, range } = this.pages;
    const count = this.order.length;
    const size = this.isWhole ? count : PAGE;
    const first = this.page * size;
    const end = Math.min(first + size, count);
    this.order.forEach((item, at) => item.rows.forEach(row => (row.hidden = at < first || at >= end)));
    range.textContent = `rows ${first + 1} to ${end} of ${count}`;
    previous.disabled = first === 0;
    next.disabled = end === count;
    all.textContent = this.isWhole ? 'pages' : 'all rows';
    all.setAttribute('aria-label', this.isWhole ? 'Show pages' : 'All rows');
  }

  private readonly body: HTMLElement;
  private readonly items: Item[] = [];
  private order: Item[];
  private column = -1;
  private direction: Direction | null = null;
  private page = 0;
  private isWhole = false;
  private pages: Record<'previous' | 'next' | 'all', HTMLButtonElement> & { range: HTMLElement } | null = null;
}

/** The items by a column: as numbers if all of it are numbers of one kind, else as text. Missing values are last. */
function sorted(items: Item[], column: number, direction: Direction): Item[] {
  const text = (item: Item) => item.cells[column] ?? '';
  const present = items.filter(item => !isMissing(text(item)));
  const numbers = new Map(present.map(item => [item, quantity(text(item))]));
  const groups = new Set([...numbers.values()].map(each => each?.group));
  // A number without a unit, such as 0, may stand among those with one.
  const named = [...groups].filter(group => group !== 'count');
  const areNumbers = named.length <= 1 && !groups.has(undefined);
  const words = new Intl.Collator(undefined, { numeric: true });
  const compare = (left: Item, right: Item) => {
    const [a, b] = [numbers.get(left)?.value ?? 0, numbers.get(right)?.value ?? 0];
    // Infinity minus itself is no number.
    return areNumbers ? (a === b ? 0 : a < b ? -1 : 1) : words.compare(text(left), text(right));
  };
  const sign = direction === 'ascending' ? 1 : -1;
  // The sort of arrays is stable, also in the other direction.
  present.sort((left, right) => sign * compare(left, right));
  return [...present, ...items.filter(item => isMissing(text(item)))];
}

/** Gives a table its buttons, if it has one row of headings and at least two rows. */
function extend(table: HTMLTableElement): void {
  const [head, ...rows] = [...table.rows];
  const headings = head ? [...head.cells] : [];
  const isSimple = headings.every(cell => cell.tagName === 'TH') && rows.every(row => row.parentElement === rows[0].parentElement);
  if (rows.length < 2 || headings.length === 0 || !isSimple || table.querySelector('.stratoscope-sort')) {
    return;
  }
  new DataTable(table, headings, rows);
}

export const tables: JupyterFrontEndPlugin<void> = {
  id: 'stratoscope-lint:tables',
  description: 'Sorts the tables of outputs, and shows long ones in pages.',
  autoStart: true,
  activate: (_: JupyterFrontEnd) => {
    watch(TABLES, table => extend(table as HTMLTableElement));
  }
};
