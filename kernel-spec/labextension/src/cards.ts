/**
 * Cards of diagnostics in outputs: a button applies a fix to the cell, and screen readers find headings. A card is marked with a
 * class (`src/diagnostics/src/render/html/mod.rs`); the lines that a fix replaces are in the data beside it (`json.rs` there).
 */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { CodeCell } from '@jupyterlab/cells';
import { INotebookTracker, Notebook } from '@jupyterlab/notebook';

import { button, letKeysPressButtons, watch } from './outputs';

const MIME = 'application/vnd.stratoscope.diagnostic+json';

/** The attributes that JupyterLab has removed. */
const ROLES: [string, Record<string, string>][] = [
  ['.stratoscope-card-head', { role: 'heading', 'aria-level': '4' }],
  ['.stratoscope-card-part', { role: 'heading', 'aria-level': '5' }]
];

/** Lines that a fix replaces. */
export interface IChange {
  /** Where they begin. */
  start: number;
  before: string;
  after: string;
}

/** The data of a card: for each fix its lines, `null` for one in words; the same for the cards below it. */
interface IData {
  changes?: (IChange | null)[];
  related_changes?: (IChange | null)[][];
}

/** Where a change applies in a text that may have been edited since: its own place, or the only one with the same lines. */
export function place(text: string, change: IChange): number | null {
  const { before, start } = change;
  const end = (at: number) => at + before.length;
  const isWhole = (at: number) =>
    text.startsWith(before, at) && (at === 0 || text[at - 1] === '\n') && (end(at) === text.length || text[end(at)] === '\n');
  if (before === '') {
    // Only lines are added: nothing shows whether the place is still the same but the end of the text.
    return start === text.length && isWhole(start) ? start : null;
  }
  if (isWhole(start)) {
    return start;
  }
  const found: number[] = [];
  for (let at = text.indexOf(before); at !== -1; at = text.indexOf(before, at + 1)) {
    if (isWhole(at)) {
      found.push(at);
    }
  }
  return found.length === 1 ? found[0] : null;
}

/** Applies a change to a cell, and begins to edit it there. Returns what there is to say. */
function apply(notebook: Notebook, cell: CodeCell, change: IChange): string {
  const model = cell.model.sharedModel;
  const at = place(model.source, change);
  if (cell.model.isDisposed || cell.readOnly || at === null) {
    return cell.readOnly ? 'The cell cannot be edited.' : 'The cell has changed: this fix does not fit any more.';
  }
  model.updateSource(at, at + change.before.length, change.after);
  notebook.activeCellIndex = notebook.widgets.indexOf(cell);
  notebook.mode = 'edit';
  const { editor } = cell;
  const position = editor?.getPositionAt(at + change.after.length);
  if (editor && position) {
    editor.setCursorPosition(position);
    editor.focus();
  }
  return 'Applied. Run the cell again.';
}

/** Gives a card what screen readers go by. */
function name(card: HTMLElement): void {
  card.setAttribute('role', 'group');
  card.setAttribute('aria-label', card.querySelector('.stratoscope-card-head')?.textContent?.trim() ?? '');
  for (const [selector, attributes] of ROLES) {
    for (const found of card.querySelectorAll(selector)) {
      Object.entries(attributes).forEach(([name, value]) => found.setAttribute(name, value));
    }
  }
}

class Cards {
  constructor(private readonly notebooks: INotebookTracker) {
    watch('.stratoscope-card', card => {
      name(card);
      this.addButtons(card);
    });
  }

  private addButtons(card: HTMLElement): void {
    const found = this.find(card);
    if (!found || card.querySelector('.stratoscope-fix button')) {
      return;
    }
    const { notebook, cell, changes } = found;
    card.querySelectorAll<HTMLElement>('.stratoscope-fix').forEach((fix, number) => {
      const change = changes[number];
      const title = fix.firstElementChild;
      if (!change || !title) {
        return;
      }
      const status = document.createElement('span');
      status.setAttribute('role', 'status');
      status.className = 'stratoscope-fix-status';
      const press = () => {
        status.textContent = apply(notebook, cell, change);
      };
      title.append(button('Apply', `Apply: ${title.textContent?.trim()}`, press), status);
    });
  }

  /** The cell of a card in a notebook, and what the fixes of the card change. */
  private find(card: HTMLElement): { notebook: Notebook; cell: CodeCell; changes: (IChange | null)[] } | null {
    const notebook = this.notebooks.find(panel => panel.node.contains(card))?.content;
    const cell = notebook?.widgets.find(each => each.node.contains(card));
    if (!notebook || !(cell instanceof CodeCell)) {
      return null;
    }
    const at = cell.outputArea.widgets.findIndex(each => each.node.contains(card));
    if (at < 0 || at >= cell.outputArea.model.length) {
      return null;
    }
    const data = cell.outputArea.model.get(at).data[MIME] as IData | undefined;
    const beside = [...cell.outputArea.widgets[at].node.querySelectorAll('.stratoscope-card')];
    const all = [data?.changes ?? [], ...(data?.related_changes ?? [])];
    return { notebook, cell, changes: all[beside.indexOf(card)] ?? [] };
  }
}

export const cards: JupyterFrontEndPlugin<void> = {
  id: 'stratoscope-lint:cards',
  description: 'Applies fixes of cards to their cells.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_: JupyterFrontEnd, notebooks: INotebookTracker) => {
    new Cards(notebooks);
    letKeysPressButtons();
  }
};
