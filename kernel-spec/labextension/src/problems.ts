/**
 * Problems of a cell by the keyboard: F8 goes to the next one of the notebook and shows it, Ctrl-. opens its fixes. Both are
 * commands of JupyterLab, so that its settings can give them other keys.
 */

import { Diagnostic, forEachDiagnostic } from '@codemirror/lint';
import { Extension, StateEffect, StateField } from '@codemirror/state';
import { EditorView, showTooltip, Tooltip } from '@codemirror/view';

/** The key that opens the fixes. */
const FIX_KEY = /Mac/.test(navigator.platform) ? '⌘.' : 'Ctrl-.';

/** A problem with its place in the present text. */
export interface IProblem {
  diagnostic: Diagnostic;
  from: number;
  to: number;
}

/** Shows a problem, or closes what is shown. */
const show = StateEffect.define<Tooltip | null>();

const shown = StateField.define<Tooltip | null>({
  create: () => null,
  update: (tooltip, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(show)) {
        return effect.value;
      }
    }
    return transaction.docChanged || transaction.selection ? null : tooltip;
  },
  provide: field => showTooltip.from(field)
});

/** What an editor needs to show problems. */
export const shownProblem: Extension = shown;

/** The problems in an editor, in the order of the text. */
export function problems(view: EditorView): IProblem[] {
  const all: IProblem[] = [];
  forEachDiagnostic(view.state, (diagnostic, from, to) => all.push({ diagnostic, from, to }));
  return all.sort((a, b) => a.from - b.from || a.to - b.to);
}

/** The problem at the cursor. */
export function problemAtCursor(view: EditorView): IProblem | undefined {
  const { head } = view.state.selection.main;
  return problems(view).find(({ from, to }) => from <= head && head <= to);
}

/** Puts the cursor at a problem and shows it. With `isEntered` the first fix has the focus, else the editor has it. */
export function showProblem(view: EditorView, problem: IProblem, isEntered: boolean): void {
  const tooltip: Tooltip = {
    pos: problem.from,
    end: problem.to,
    above: false,
    create: () => {
      const dom = box(view, problem, isEntered);
      return { dom, mount: () => isEntered && (dom.querySelector<HTMLElement>('button') ?? dom).focus() };
    }
  };
  view.dispatch({ selection: { anchor: problem.from }, scrollIntoView: true, effects: show.of(tooltip) });
}

/** Closes the problem that is shown; returns whether there was one. */
export function closeProblem(view: EditorView): boolean {
  if (!view.state.field(shown, false)) {
    return false;
  }
  view.dispatch({ effects: show.of(null) });
  return true;
}

function box(view: EditorView, { diagnostic, from, to }: IProblem, isEntered: boolean): HTMLElement {
  const dom = document.createElement('div');
  dom.className = 'cm-tooltip-lint stratoscope-problem';
  dom.tabIndex = -1;
  // An alert is read out where it appears; a dialog, when it gets the focus.
  dom.setAttribute('role', isEntered ? 'dialog' : 'alert');
  dom.setAttribute('aria-label', diagnostic.message);
  const content = document.createElement('div');
  content.className = `cm-diagnostic cm-diagnostic-${diagnostic.severity}`;
  content.append(diagnostic.renderMessage?.(view) ?? diagnostic.message);
  for (const action of diagnostic.actions ?? []) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'cm-diagnosticAction';
    button.textContent = action.name;
    button.addEventListener('click', () => {
      closeProblem(view);
      action.apply(view, from, to);
      view.focus();
    });
    content.append(button);
  }
  if (!isEntered) {
    const keys = document.createElement('div');
    keys.className = 'stratoscope-lint-title';
    const fixes = diagnostic.actions?.length ? ` · ${FIX_KEY} its fixes` : '';
    keys.append(`F8 next problem${fixes} · Esc close`);
    content.append(keys);
  }
  dom.append(content);
  return dom;
}

/**
 * A key while a problem is shown, before JupyterLab takes it: arrows go from one fix to the next, Escape closes. Other keys in
 * the problem are for its buttons, not for the notebook.
 */
export function pressKey(event: KeyboardEvent, view: EditorView): void {
  const dom = view.dom.querySelector<HTMLElement>('.stratoscope-problem');
  const isInside = dom?.contains(document.activeElement) ?? false;
  if (event.key === 'Escape' && closeProblem(view)) {
    view.focus();
  } else if (!dom || !isInside || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else {
    const buttons = [...dom.querySelectorAll<HTMLElement>('button')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (!step) {
      return;
    }
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    buttons[(at + step + buttons.length) % buttons.length]?.focus();
  }
  event.preventDefault();
  event.stopPropagation();
}
