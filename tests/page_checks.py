"""Automatic checks of a rendered page: contrast of texts, horizontal overflow, and whether the front end removed parts
of the HTML.

`load` defines these as JavaScript functions of the page; the others call them. An output is named by the number of its
code cell and its own number in that cell, both from 0: JupyterLab and nbconvert have the same classes for them.
"""

import json

CALCULATIONS = r"""window.page_checks = (() => {
    const color = text => {
        const [r, g, b, a = 1] = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
        return {rgb: [r, g, b], a};
    };
    const over = ({rgb, a}, below) => rgb.map((value, i) => value * a + below[i] * (1 - a));
    const mix = (a, b, share) => a.map((value, i) => value * share + b[i] * (1 - share));
    // What is seen where the innermost of some nested elements paints `ink`: backgrounds lie over one another, and
    // an element with an opacity is laid as a whole over what is behind it.
    const seen = (chain, ink, below) => {
        if (!chain.length) return ink ? over(ink, below) : below;
        const style = getComputedStyle(chain[0]);
        const inside = seen(chain.slice(1), ink, over(color(style.backgroundColor), below));
        return mix(inside, below, Number(style.opacity));
    };
    const luminance = rgb => {
        const [r, g, b] = rgb.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => {
        const [x, y] = [luminance(a), luminance(b)];
        return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    };
    const output = (cell, number) => document.querySelectorAll('.jp-CodeCell')[cell]
        ?.querySelectorAll('.jp-OutputArea-child')[number]?.querySelector('.jp-OutputArea-output');
    const isShown = node => node.getClientRects().length > 0;

    // The contrast of every text as WCAG computes it, the worst first.
    const contrasts = root => {
        const found = [];
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const text = walker.currentNode.textContent.trim();
            const node = walker.currentNode.parentElement;
            if (!/[\p{L}\p{N}]/u.test(text) || !isShown(node)) continue;
            const chain = [];
            for (let each = node; each; each = each.parentElement) chain.unshift(each);
            const white = [255, 255, 255];
            const ink = seen(chain, color(getComputedStyle(node).color), white);
            found.push({ratio: ratio(ink, seen(chain, null, white)), text: text.slice(0, 60)});
        }
        return found.sort((a, b) => a.ratio - b.ratio);
    };
    // Every text and line of the pictures that hold SVG as their data: its contrast with what is behind the picture,
    // which has no ground of its own, and the size of texts as shown. The worst first.
    const drawn = root => {
        const found = [];
        for (const image of root.querySelectorAll('img[src^="data:image/svg+xml,"]')) {
            const chain = [];
            for (let each = image; each; each = each.parentElement) chain.unshift(each);
            const ground = seen(chain, null, [255, 255, 255]);
            const source = decodeURIComponent(image.src.slice('data:image/svg+xml,'.length));
            const picture = new DOMParser().parseFromString(source, 'image/svg+xml').documentElement;
            const scale = image.getBoundingClientRect().width / Number(picture.getAttribute('width'));
            const hex = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
            for (const each of picture.querySelectorAll('text, polyline, circle, rect')) {
                const [ink, opacity] = each.tagName === 'polyline' || each.getAttribute('fill') === 'none'
                    ? [each.getAttribute('stroke'), each.getAttribute('stroke-opacity') ?? each.getAttribute('opacity')]
                    : [each.getAttribute('fill'), each.getAttribute('fill-opacity') ?? each.getAttribute('opacity')];
                if (!/^#[0-9a-f]{6}$/i.test(ink ?? '') || Number(opacity ?? 1) < 0.5) continue;
                const size = each.tagName === 'text' ? Number(each.getAttribute('font-size')) * scale : null;
                found.push({ratio: ratio(over({rgb: hex(ink), a: Number(opacity ?? 1)}, ground), ground),
                    kind: each.tagName, size, text: each.textContent.trim()});
            }
        }
        return found.sort((a, b) => a.ratio - b.ratio);
    };
    // What is wider inside than outside, where it is not cut on purpose and says so with an ellipsis.
    const overflowing = root => [root, ...root.querySelectorAll('*')]
        .filter(each => each.clientWidth > 0 && each.scrollWidth > each.clientWidth
            && getComputedStyle(each).textOverflow !== 'ellipsis')
        .map(each => `<${each.tagName.toLowerCase()} style="${each.getAttribute('style') || ''}"> is ` +
            `${each.scrollWidth} wide inside and ${each.clientWidth} outside: ${each.textContent.trim().slice(0, 80)}`);
    // Where what is rendered is not what the kernel sent, but for the buttons of fixes, which the extension adds.
    const differences = (rendered, html) => {
        const root = rendered.cloneNode(true);
        root.querySelectorAll('.stratoscope-fix button, .stratoscope-fix-status').forEach(each => each.remove());
        const source = document.createElement('template');
        source.innerHTML = html;
        const describe = each => [each.tagName, each.style.cssText, each.title].join(' ');
        const [wanted, found] = [source.content, root].map(each => [...each.querySelectorAll('*')].map(describe));
        const odd = wanted.map((each, i) => [each, found[i]]).filter(([a, b]) => a !== b).slice(0, 3);
        if (found.length !== wanted.length) odd.push([`${wanted.length} elements`, `${found.length} elements`]);
        if (source.content.textContent.trim() !== root.textContent.trim()) odd.push(['the text', root.textContent.slice(0, 200)]);
        return odd.map(([a, b]) => `${a} became ${b}`);
    };
    const box = node => {
        const {x, y, width, height} = node.getBoundingClientRect();
        return [x + scrollX, y + scrollY, width, height];
    };
    return {output, contrasts, drawn, overflowing, differences, box, isShown};
})(); true"""


def load(page):
    page.evaluate(CALCULATIONS)


def output(page, cell, number, html=None):
    """An output: its box in the page and that of its cell, its text, its worst contrasts, what overflows, what of
    `html` was changed."""
    source = json.dumps(html)
    return page.evaluate(f"""(() => {{
        const root = page_checks.output({cell}, {number});
        if (!root) return null;
        // What can be opened is open.
        const closed = [...root.querySelectorAll('details:not([open])')];
        closed.forEach(each => each.open = true);
        const found = {{
            text: root.innerText,
            contrasts: page_checks.contrasts(root).slice(0, 8),
            drawn: page_checks.drawn(root),
            overflowing: page_checks.overflowing(root),
        }};
        closed.forEach(each => each.open = false);
        if ({source} !== null) found.differences = page_checks.differences(root, {source});
        found.shown = page_checks.isShown(root);
        found.box = page_checks.box(root);
        found.cell = page_checks.box(root.closest('.jp-CodeCell'));
        return found;
    }})()""")
