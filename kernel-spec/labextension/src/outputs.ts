/**
 * What the extension adds to the outputs of a notebook: only the page changes, what the notebook stores stays as the kernel
 * wrote it.
 */

/** The class of all buttons in outputs. */
export const BUTTON = 'stratoscope-button';

/** Calls a function for each element of the page that matches, now and whenever one is added. */
export function watch(selector: string, extend: (found: HTMLElement) => void): void {
  const look = (node: Node) => {
    if (!(node instanceof Element)) {
      return;
    }
    if (node.matches(selector)) {
      extend(node as HTMLElement);
    }
    node.querySelectorAll<HTMLElement>(selector).forEach(extend);
  };
  const observer = new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(look)));
  observer.observe(document.body, { childList: true, subtree: true });
  look(document.body);
}

/** A button in an output. `label` is read out instead of the text. */
export function button(text: string, label: string | null, press: () => void): HTMLButtonElement {
  const made = document.createElement('button');
  made.type = 'button';
  made.className = BUTTON;
  made.textContent = text;
  if (label !== null) {
    made.setAttribute('aria-label', label);
  }
  made.addEventListener('click', press);
  return made;
}

/** Enter and Space press the button that has the focus; in a notebook they would begin to edit its cell. */
export function letKeysPressButtons(): void {
  window.addEventListener(
    'keydown',
    event => {
      const isPress = event.key === 'Enter' || event.key === ' ';
      const isPlain = !event.ctrlKey && !event.shiftKey && !event.altKey && !event.metaKey;
      if (isPress && isPlain && event.target instanceof Element && event.target.matches(`.${BUTTON}`)) {
        event.stopPropagation();
      }
    },
    true
  );
}
