/**
 * What stratoscope's checks find in the cells of a notebook, underlined 250 ms after the last key. Cells of notebooks with
 * another kernel, or without one, are left alone.
 */

import { linter } from '@codemirror/lint';
import { Extension, StateEffect } from '@codemirror/state';
import { EditorView, ViewPlugin } from '@codemirror/view';
import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { INotebookTracker, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel } from '@jupyterlab/services';

import { cards } from './cards';
import { Channel } from './channel';
import { addCommands, OURS } from './commands';
import { markers } from './markers';
import { shownProblem } from './problems';
import { stepping } from './stepping';
import { tables } from './tables';

const DELAY_MS = 250;

/** Longer texts are not sent; the kernel would not look at them. */
const MOST_TEXT = 1 << 20;

/** What makes a strategy, or makes one active. */
const OF_STRATEGIES = /Strategy|set_default|scope/;

/** Asks for a check of a text that has not changed. */
const again = StateEffect.define<null>();

class Squiggles {
  constructor(private readonly notebooks: INotebookTracker) {
    notebooks.widgetAdded.connect((_, panel) => {
      panel.sessionContext.kernelChanged.connect(() => {
        panel.removeClass(OURS);
        this.refresh(panel);
      });
    });
    NotebookActions.executed.connect((_, { notebook }) => {
      const panel = notebooks.find(each => each.content === notebook);
      if (panel) {
        this.refresh(panel);
      }
    });
  }

  /** What the editor of a cell's text gets. */
  extension(model: object): Extension {
    const followed = ViewPlugin.define(view => {
      this.views.set(model, view);
      return {
        destroy: () => {
          if (this.views.get(model) === view) {
            this.views.delete(model);
          }
        }
      };
    });
    const source = linter(view => this.check(model, view), {
      delay: DELAY_MS,
      needsRefresh: update => update.transactions.some(each => each.effects.some(effect => effect.is(again)))
    });
    return [followed, source, shownProblem];
  }

  /** The editor of a cell. */
  view(model: object): EditorView | undefined {
    return this.views.get(model);
  }

  private async check(model: object, view: EditorView) {
    const { doc } = view.state;
    const found = this.cell(model);
    const kernel = found?.panel.sessionContext.session?.kernel;
    if (!found || !kernel || doc.length > MOST_TEXT) {
      return [];
    }
    const { panel, id, strategies } = found;
    if (this.strategies.get(panel) !== strategies) {
      // Whether there is a strategy at all decides for the other cells, too.
      const isFirst = !this.strategies.has(panel);
      this.strategies.set(panel, strategies);
      if (!isFirst) {
        this.refresh(panel, model);
      }
    }
    const elsewhere = strategies.split(' ').some(each => each !== '' && each !== id);
    const findings = await this.channel(kernel).ask(id, doc.toString(), elsewhere);
    return findings ? markers(doc, findings) : [];
  }

  /** The code cell whose text this is: its notebook and id, and the ids of the cells that may make a strategy. */
  private cell(model: object): { panel: NotebookPanel; id: string; strategies: string } | null {
    let id = '';
    const panel = this.notebooks.find(each => {
      for (const cell of each.content.model?.cells ?? []) {
        if (cell === model && cell.type === 'code') {
          id = cell.id;
        }
      }
      return id !== '';
    });
    if (!panel) {
      return null;
    }
    const cells = [...(panel.content.model?.cells ?? [])];
    const of = cells.filter(cell => cell.type === 'code' && OF_STRATEGIES.test(cell.sharedModel.source));
    return { panel, id, strategies: of.map(cell => cell.id).join(' ') };
  }

  private channel(kernel: Kernel.IKernelConnection): Channel {
    let channel = this.channels.get(kernel);
    if (!channel) {
      channel = new Channel(kernel, () => {
        this.notebooks
          .filter(each => each.sessionContext.session?.kernel === kernel)
          .forEach(each => {
            each.addClass(OURS);
            this.refresh(each);
          });
      });
      this.channels.set(kernel, channel);
    }
    return channel;
  }

  /** Checks all cells of a notebook once more, but this one. */
  private refresh(panel: NotebookPanel, but?: object): void {
    for (const cell of panel.content.model?.cells ?? []) {
      const view = cell === but ? undefined : this.views.get(cell);
      view?.dispatch({ effects: again.of(null) });
    }
  }

  private readonly channels = new WeakMap<Kernel.IKernelConnection, Channel>();
  private readonly views = new Map<object, EditorView>();
  /** The cells that may make a strategy, as the last check saw them. */
  private readonly strategies = new WeakMap<NotebookPanel, string>();
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'stratoscope-lint:plugin',
  description: 'Shows what stratoscope finds in a cell while it is typed.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, INotebookTracker],
  optional: [ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    editors: IEditorExtensionRegistry,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null
  ) => {
    const squiggles = new Squiggles(notebooks);
    addCommands(app, notebooks, model => squiggles.view(model), palette);
    editors.addExtension({
      name: 'stratoscope-lint',
      factory: ({ inline, model }) =>
        inline ? EditorExtensionRegistry.createImmutableExtension(squiggles.extension(model)) : null
    });
  }
};

export default [plugin, cards, stepping, tables];
