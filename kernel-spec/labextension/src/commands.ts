/** The commands that find problems and their fixes by the keyboard. */

import { EditorView } from '@codemirror/view';
import { JupyterFrontEnd } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, Notebook } from '@jupyterlab/notebook';

import { BUTTON } from './outputs';
import { IProblem, pressKey, problemAtCursor, problems, showProblem } from './problems';

/** The class of a notebook whose kernel is ours: the keys of all others keep their meaning. */
export const OURS = 'stratoscope-notebook';

const NEXT = 'stratoscope:next-problem';
const PREVIOUS = 'stratoscope:previous-problem';
const FIX = 'stratoscope:fix-problem';

/** The editor of a cell's text, given the model of the cell. */
type Views = (model: object) => EditorView | undefined;

interface IPlace {
  cell: number;
  view: EditorView;
  problem: IProblem;
}

/** The problems of all cells, in their order. */
function all(notebook: Notebook, views: Views): IPlace[] {
  return notebook.widgets.flatMap(({ model }, cell) => {
    const view = views(model);
    return view ? problems(view).map(problem => ({ cell, view, problem })) : [];
  });
}

/** The place after the cursor or before it; behind the last one comes the first. */
function neighbor(notebook: Notebook, views: Views, step: 1 | -1): IPlace | undefined {
  const places = all(notebook, views);
  const active = notebook.activeCellIndex;
  const head = notebook.activeCell ? views(notebook.activeCell.model)?.state.selection.main.head ?? 0 : 0;
  // In a cell that is not edited the problem at its beginning is still to come.
  const from = notebook.mode === 'edit' || step < 0 ? head : -1;
  const isAfter = ({ cell, problem }: IPlace) => cell > active || (cell === active && problem.from > from);
  const isBefore = ({ cell, problem }: IPlace) => cell < active || (cell === active && problem.from < from);
  return step > 0 ? places.find(isAfter) ?? places[0] : places.filter(isBefore).pop() ?? places[places.length - 1];
}

async function go(notebook: Notebook, { cell, view, problem }: IPlace, isEntered: boolean): Promise<void> {
  notebook.activeCellIndex = cell;
  if (!view.dom.isConnected) {
    // A cell out of view is not in the page. Another scrolling ends this one.
    await notebook.scrollToItem(cell).catch(() => undefined);
  }
  notebook.mode = 'edit';
  view.focus();
  showProblem(view, problem, isEntered);
}

/** The fixes of the problem at the cursor, else those of the card below the cell, else those of the next problem. */
function fix(notebook: Notebook, views: Views): void {
  const { activeCell, activeCellIndex: cell } = notebook;
  const view = activeCell ? views(activeCell.model) : undefined;
  const problem = view && problemAtCursor(view);
  const inCard = activeCell?.node.querySelector<HTMLElement>(`.stratoscope-fix .${BUTTON}`);
  const next = neighbor(notebook, views, 1);
  if (view && problem) {
    void go(notebook, { cell, view, problem }, true);
  } else if (inCard) {
    inCard.focus();
    inCard.scrollIntoView({ block: 'nearest' });
  } else if (next) {
    void go(notebook, next, true);
  }
}

export function addCommands(app: JupyterFrontEnd, notebooks: INotebookTracker, views: Views, palette: ICommandPalette | null): void {
  const add = (id: string, label: string, key: string, execute: (notebook: Notebook) => void) => {
    app.commands.addCommand(id, {
      label,
      isEnabled: () => notebooks.currentWidget !== null && notebooks.currentWidget === app.shell.currentWidget,
      execute: () => {
        const notebook = notebooks.currentWidget?.content;
        if (notebook) {
          execute(notebook);
        }
      }
    });
    app.commands.addKeyBinding({ command: id, keys: [key], selector: `.${OURS} .jp-Notebook` });
    palette?.addItem({ command: id, category: 'Rust (stratoscope)' });
  };
  const goTo = (step: 1 | -1) => (notebook: Notebook) => {
    const found = neighbor(notebook, views, step);
    if (found) {
      void go(notebook, found, false);
    }
  };
  add(NEXT, 'Next Problem', 'F8', goTo(1));
  add(PREVIOUS, 'Previous Problem', 'Shift F8', goTo(-1));
  add(FIX, 'Fix Problem', 'Accel .', notebook => fix(notebook, views));
  window.addEventListener(
    'keydown',
    event => {
      const cell = notebooks.currentWidget?.content.activeCell;
      const view = cell ? views(cell.model) : undefined;
      if (view) {
        pressKey(event, view);
      }
    },
    true
  );
}
