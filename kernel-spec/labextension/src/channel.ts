/**
 * The comm to one kernel: requests with their answers. Of each cell only the last request counts; an answer to another one is
 * dropped.
 */

import { Kernel } from '@jupyterlab/services';

import { asAnswer, IFinding, TARGET } from './protocol';

/** What `kernel_info_reply` calls our kernel, whatever name it was installed under. */
const IMPLEMENTATION = 'stratoscope';

/** A request that was not answered by then has no answer. */
const PATIENCE_MS = 10_000;

type Findings = IFinding[] | null;

interface IPending {
  sequence: number;
  settle: (findings: Findings | PromiseLike<Findings>) => void;
}

export class Channel {
  /**
   * @param kernel The connection; it outlives restarts of its kernel.
   * @param onReady Called when the kernel is known to be ours, and when it has restarted.
   */
  constructor(
    private readonly kernel: Kernel.IKernelConnection,
    private readonly onReady: () => void
  ) {
    kernel.statusChanged.connect(this.followStatus, this);
    kernel.disposed.connect(() => this.forget());
    void this.meet();
  }

  /** What the kernel finds in a cell's text; `null`: there is no kernel of ours, or it does not answer. */
  ask(cell: string, text: string, strategyElsewhere: boolean): Promise<Findings> {
    const comm = this.open();
    if (!comm) {
      return Promise.resolve(null);
    }
    const sequence = ++this.sequence;
    const answer = new Promise<Findings>(settle => {
      const before = this.pending.get(cell);
      this.pending.set(cell, { sequence, settle });
      setTimeout(() => this.settle(cell, sequence, null), PATIENCE_MS);
      try {
        // The kernel sends no `idle` for it, so nobody else ends this future.
        comm.send({ sequence, cell, text, strategy_elsewhere: strategyElsewhere }).dispose();
      } catch {
        this.settle(cell, sequence, null);
      }
      // Whoever waits for the earlier request gets the answer to this one.
      before?.settle(Promise.resolve().then(() => answer));
    });
    return answer;
  }

  private async meet(): Promise<void> {
    try {
      const info = await this.kernel.info;
      this.isOurs = info.implementation === IMPLEMENTATION;
    } catch {
      return;
    }
    if (this.isOurs && !this.kernel.isDisposed) {
      this.onReady();
    }
  }

  /** The comm, opened if it is not; `null`: nothing can be asked now. */
  private open(): Kernel.IComm | null {
    const { kernel } = this;
    const isThere =
      !kernel.isDisposed && kernel.connectionStatus === 'connected' && (kernel.status === 'idle' || kernel.status === 'busy');
    if (!this.isOurs || !isThere || this.isRefused || !kernel.handleComms) {
      return null;
    }
    if (this.comm && !this.comm.isDisposed) {
      return this.comm;
    }
    try {
      const comm = kernel.createComm(TARGET);
      comm.onMsg = message => {
        const answer = asAnswer(message.content.data);
        if (answer) {
          this.settle(answer.cell, answer.sequence, answer.ranges);
        }
      };
      comm.onClose = () => {
        // Our kernel of an earlier version has no such target.
        this.isRefused = true;
        this.forget();
      };
      comm.open().dispose();
      this.comm = comm;
    } catch {
      this.comm = null;
    }
    return this.comm;
  }

  private settle(cell: string, sequence: number, findings: Findings): void {
    const pending = this.pending.get(cell);
    if (pending?.sequence === sequence) {
      this.pending.delete(cell);
      pending.settle(findings);
    }
  }

  /** The kernel is gone, or another process: nobody answers what was asked. */
  private forget(): void {
    this.comm = null;
    const pending = [...this.pending.values()];
    this.pending.clear();
    pending.forEach(each => each.settle(null));
  }

  private followStatus(_: Kernel.IKernelConnection, status: Kernel.Status): void {
    if (status === 'idle' || status === 'busy') {
      if (this.isAnother) {
        this.isAnother = false;
        if (this.isOurs) {
          this.onReady();
        }
      }
    } else {
      this.isAnother = true;
      this.isRefused = false;
      this.forget();
    }
  }

  private comm: Kernel.IComm | null = null;
  private isOurs = false;
  private isRefused = false;
  /** The process has ended or restarts; the next one knows no comm. */
  private isAnother = true;
  private sequence = 0;
  private readonly pending = new Map<string, IPending>();
}
