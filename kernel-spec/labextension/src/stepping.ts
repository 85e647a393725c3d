/**
 * A run of training steps back: two buttons beside those of JupyterLab's debugger panel, and commands with keys. JupyterLab
 * has buttons for the way forward only.
 */

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';

import { OURS } from './commands';

/** Runs that stand between two cells are threads from this number on. */
const FIRST_RUN = 1_000_000;

const BUTTON = 'stratoscope-step';

/** What the debugger's buttons are found by. */
const FORWARD = '[data-command="debugger:continue"]';

interface IStep {
  id: string;
  label: string;
  caption: string;
  key: string;
  request: string;
  path: string;
}

const STEPS: IStep[] = [
  {
    id: 'stratoscope:step-back',
    label: 'Step the Run Back',
    caption: 'Step back: undo the last optimizer step of the run',
    key: 'Shift F10',
    request: 'stepBack',
    path: 'M6 3v10h1.5V3zm2 5 6 5V3z'
  },
  {
    id: 'stratoscope:run-back',
    label: 'Run Back to the Last Breakpoint',
    caption: 'Run back: to the last breakpoint of the run, or to its beginning',
    key: 'Shift F9',
    request: 'reverseContinue',
    path: 'M2 8l6 5V3zm6 0 6 5V3z'
  }
];

interface IEvent {
  event?: string;
  body?: { threadId?: number };
}

class Runs {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly notebooks: INotebookTracker
  ) {
    notebooks.widgetAdded.connect((_, panel) => {
      this.follow(panel);
      panel.sessionContext.kernelChanged.connect(() => this.follow(panel));
    });
    notebooks.currentChanged.connect(() => this.show());
  }

  /** The kernel of the current notebook, if a run stands in it. */
  kernel(): Kernel.IKernelConnection | null {
    const kernel = this.notebooks.currentWidget?.sessionContext.session?.kernel ?? null;
    return kernel && this.standing.get(kernel.id)?.size ? kernel : null;
  }

  async step(request: string): Promise<void> {
    const kernel = this.kernel();
    const thread = kernel && [...(this.standing.get(kernel.id) ?? [])].pop();
    if (!kernel || thread === undefined || thread === null) {
      return;
    }
    const content = { type: 'request' as const, seq: ++this.sent, command: request, arguments: { threadId: thread } };
    const reply = await kernel.requestDebug(content as KernelMessage.IDebugRequestMsg['content']).done;
    if (!reply.content.success) {
      console.warn(reply.content.message);
    }
  }

  private follow(panel: NotebookPanel): void {
    const kernel = panel.sessionContext.session?.kernel;
    if (kernel && !this.followed.has(kernel)) {
      this.followed.add(kernel);
      kernel.iopubMessage.connect((_, { header, content }) => {
        if ((header.msg_type as string) === 'debug_event') {
          this.changed(kernel.id, content as IEvent);
        }
      });
      kernel.statusChanged.connect((_, status) => {
        if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
          this.standing.delete(kernel.id);
          this.show();
        }
      });
    }
  }

  private changed(kernel: string, { event, body }: IEvent): void {
    const thread = body?.threadId ?? 0;
    if (thread < FIRST_RUN) {
      return;
    }
    const threads = this.standing.get(kernel) ?? new Set<number>();
    threads.delete(thread);
    if (event === 'stopped') {
      threads.add(thread);
    }
    this.standing.set(kernel, threads);
    this.show();
  }

  /** Puts the buttons beside those of the panel, which may not be there yet, and enables them where a run stands. */
  private show(attempts = 20): void {
    STEPS.forEach(({ id }) => this.app.commands.notifyCommandChanged(id));
    const toolbar = document.querySelector(FORWARD)?.closest<HTMLElement>('.jp-Toolbar');
    if (!toolbar) {
      window.clearTimeout(this.timer);
      if (attempts > 0 && this.kernel()) {
        this.timer = window.setTimeout(() => this.show(attempts - 1), 500);
      }
      return;
    }
    for (const step of STEPS) {
      const own = toolbar.querySelector<HTMLButtonElement>(`.${BUTTON}[data-command="${step.id}"]`);
      const button = own ?? toolbar.appendChild(this.button(step));
      button.disabled = this.kernel() === null;
    }
  }

  private button({ id, caption, path }: IStep): HTMLButtonElement {
    const button = document.createElement('button');
    button.className = BUTTON;
    button.dataset.command = id;
    button.title = caption;
    button.setAttribute('aria-label', caption);
    button.innerHTML = `<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" d="${path}"/></svg>`;
    button.addEventListener('click', () => void this.app.commands.execute(id));
    return button;
  }

  /** The threads of the runs that stand, by the id of their kernel. */
  private readonly standing = new Map<string, Set<number>>();
  private readonly followed = new WeakSet<Kernel.IKernelConnection>();
  private sent = 0;
  private timer = 0;
}

export const stepping: JupyterFrontEndPlugin<void> = {
  id: 'stratoscope-lint:stepping',
  description: "Steps a run of training back in JupyterLab's debugger panel.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette],
  activate: (app: JupyterFrontEnd, notebooks: INotebookTracker, palette: ICommandPalette | null) => {
    const runs = new Runs(app, notebooks);
    for (const { id, label, caption, key, request } of STEPS) {
      app.commands.addCommand(id, {
        label,
        caption,
        isEnabled: () => runs.kernel() !== null,
        execute: () => runs.step(request)
      });
      app.commands.addKeyBinding({ command: id, keys: [key], selector: `.${OURS}` });
      palette?.addItem({ command: id, category: 'Rust (stratoscope)' });
    }
  }
};
