/**
 * The messages of the comm `stratoscope.lint`; they are described in `src/jupyter/src/lint.rs`. Positions are UTF-16 code
 * units, in which JavaScript and CodeMirror count, too.
 */

export const TARGET = 'stratoscope.lint';

/** A replacement of a part of the text. */
export interface IEdit {
  from: number;
  to: number;
  insert: string;
}

/** Something that was found in the text. */
export interface IFinding {
  from: number;
  to: number;
  severity: 'error' | 'warning' | 'note';
  code: string;
  /** One line, with names in backticks. */
  message: string;
  /** Sentences. */
  why: string[];
  /** The places; the first one is that of the finding. */
  labels: { from: number; to: number; text: string }[];
  /** Without edits: advice in words. */
  fixes: { title: string; edits: IEdit[] }[];
  /** The page of the rule in short. */
  page: { name: string; finds: string; why: string; good: string } | null;
}

/** The answer to one request. */
export interface IAnswer {
  sequence: number;
  cell: string;
  ranges: IFinding[];
}

/** The data of a message as an answer; `null` if it is none. */
export function asAnswer(data: unknown): IAnswer | null {
  const answer = data as IAnswer | null;
  const isAnswer =
    typeof answer === 'object' &&
    answer !== null &&
    typeof answer.sequence === 'number' &&
    typeof answer.cell === 'string' &&
    Array.isArray(answer.ranges);
  return isAnswer ? answer : null;
}
