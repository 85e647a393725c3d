/**
 * Findings as markers of CodeMirror: the underlined range, what hovering shows, and the buttons that apply fixes. Texts of the
 * kernel become text nodes, never markup.
 */

import { Action, Diagnostic } from '@codemirror/lint';
import { EditorState, Text } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

import { IEdit, IFinding } from './protocol';

const SEVERITIES = { error: 'error', warning: 'warning', note: 'info' } as const;

/** More buttons than these help nobody. */
const MOST_ACTIONS = 4;

/** The markers for what was found in `doc`. */
export function markers(doc: Text, findings: IFinding[]): Diagnostic[] {
  const inside = ({ from, to }: { from: number; to: number }) => 0 <= from && from <= to && to <= doc.length;
  return findings.filter(inside).map(finding => {
    const fixes = finding.fixes.filter(fix => fix.edits.length > 0 && fix.edits.every(inside));
    return {
      from: finding.from,
      to: finding.to,
      severity: SEVERITIES[finding.severity] ?? 'info',
      message: `${finding.code}: ${finding.message}`,
      renderMessage: () => card(finding),
      actions: fixes.slice(0, MOST_ACTIONS).map(fix => action(doc, finding, fix))
    };
  });
}

function action(doc: Text, finding: IFinding, fix: { title: string; edits: IEdit[] }): Action {
  return {
    name: plain(fix.title),
    apply: (view: EditorView, from: number) => {
      const changes = moved(doc, view.state, fix.edits, from - finding.from);
      if (changes && !view.state.readOnly) {
        view.dispatch({ changes, userEvent: 'input.fix' });
        view.focus();
      }
    }
  };
}

/**
 * The edits in the present text, which may have been changed before the place of the finding since it was checked; `null` where
 * it was changed at a place of the edits.
 */
function moved(doc: Text, now: EditorState, edits: IEdit[], by: number): IEdit[] | null {
  const shifted = edits.map(edit => ({ ...edit, from: edit.from + by, to: edit.to + by }));
  const isSame = shifted.every((edit, at) => {
    const { from, to } = edits[at];
    return 0 <= edit.from && edit.to <= now.doc.length && now.doc.sliceString(edit.from, edit.to) === doc.sliceString(from, to);
  });
  // An insertion replaces nothing that could be compared.
  const inserts = edits.some(edit => edit.from === edit.to);
  return isSame && (!inserts || now.doc.eq(doc)) ? shifted : null;
}

/** What hovering shows: the finding, then the page of its rule in short. */
function card(finding: IFinding): HTMLElement {
  const head = element('div', 'message', inline(finding.message));
  head.prepend(element('span', 'code', [finding.code]), ' ');
  const parts: HTMLElement[] = [head];
  const labels = finding.labels.map(label => label.text).filter(text => text !== '');
  for (const text of [...labels.slice(0, 1), ...finding.why]) {
    parts.push(element('div', 'why', inline(text)));
  }
  for (const fix of finding.fixes.filter(fix => fix.edits.length === 0).slice(0, MOST_ACTIONS)) {
    parts.push(element('div', 'advice', inline(fix.title)));
  }
  if (finding.page) {
    const { name, finds, why, good } = finding.page;
    const page = element('div', 'page', [element('div', 'title', [`${finding.code} ${name}`])]);
    page.append(element('div', 'text', inline(finds)), element('div', 'text', inline(why)));
    page.append(element('div', 'text', ['Example:']), element('pre', 'cell', [good]));
    parts.push(page);
  }
  return element('div', 'card', parts);
}

function element(tag: string, name: string, children: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = `stratoscope-lint-${name}`;
  made.append(...children);
  return made;
}

/** A text in which backticks enclose code. */
function inline(text: string): (Node | string)[] {
  return text.split('`').map((part, at) => (at % 2 ? element('code', 'name', [part]) : part));
}

function plain(text: string): string {
  return text.replace(/`/g, '');
}
