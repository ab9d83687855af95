// What is wrong with the layout of a page as it stands: sentences, none where all is well. An expression for a debugger to evaluate.
(() => {
  const found = [];
  const root = document.documentElement;
  const LEAST_TARGET = 24;
  const named = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const kind = element.classList.length ? `.${[...element.classList].join(".")}` : "";
    return `${element.localName}${id}${kind} "${element.textContent.trim().slice(0, 40)}"`;
  };
  const say = (what, ...elements) => found.push(`${what}: ${elements.map(named).join(" and ")}`);
  const style = (element) => getComputedStyle(element);
  /** Meant for screen readers alone, or not shown at all. */
  const unseen = (element) => !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.closest(".out, .skip:not(:focus)") !== null;

  if (root.scrollWidth > innerWidth) found.push(`the page is ${root.scrollWidth} px wide in a window of ${innerWidth}`);

  /** A box cut down to what its scrolled ancestors show; null for none. Says where an ancestor that cannot be scrolled cuts text off. */
  function seen(box, element, text) {
    let { left, right, top, bottom } = box;
    for (let each = element; each && each !== root && each !== document.body; each = each.parentElement) {
      const { overflowX, overflowY, position } = style(each);
      const frame = each.getBoundingClientRect();
      for (const [overflow, low, high, from, to] of [[overflowX, left, right, frame.left, frame.right], [overflowY, top, bottom, frame.top, frame.bottom]]) {
        const beyond = low < from - 1.5 || high > to + 1.5;
        if (text && beyond && (overflow === "hidden" || overflow === "clip")) say("text is cut off", element, each);
      }
      if (overflowX !== "visible") [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      if (overflowY !== "visible") [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
      if (right - left < 1 || bottom - top < 1) return null;
      if (position === "fixed") break;
    }
    return { left, right, top, bottom };
  }

  const common = (one, other) => [Math.min(one.right, other.right) - Math.max(one.left, other.left), Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)];

  // --- text: nothing cut off, nothing on top of something else ------------------------------------------------------------------

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || unseen(element) || element.closest("select, script, style")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      const part = seen(box, element, true);
      if (!part) continue;
      if (part.right > root.clientWidth + 1 || part.left < -1) say("text runs out of the window", element);
      texts.push({ ...part, element, text });
    }
  }
  texts.sort((one, other) => one.top - other.top);
  texts.forEach((one, at) => {
    for (let next = at + 1; next < texts.length && texts[next].top < one.bottom; next++) {
      const other = texts[next];
      if (other.text === one.text) continue;
      const [wide, high] = common(one, other);
      if (wide > 2 && high > 0.35 * Math.min(one.bottom - one.top, other.bottom - other.top)) say("text on text", one.element, other.element);
    }
  });

  // --- controls: apart, large enough, with a visible focus --------------------------------------------------------------------------

  const controls = [...document.querySelectorAll("a[href], button, select, input, textarea, summary, [tabindex='0']")].filter((each) => !unseen(each) && !each.disabled);
  // A link that goes over several lines has a box on each.
  const boxes = (element) => (style(element).display === "inline" ? [...element.getClientRects()] : [element.getBoundingClientRect()]);
  const placed = controls.flatMap((element) => boxes(element).map((box) => ({ element, ...seen(box, element, false) }))).filter((each) => each.right !== undefined);
  const related = (one, other) => one.contains(other) || other.contains(one);
  placed.forEach((one, at) => {
    for (const other of placed.slice(at + 1)) {
      const [wide, high] = common(one, other);
      if (wide > 1 && high > 1 && !related(one.element, other.element)) say("controls on each other", one.element, other.element);
    }
    for (const other of texts) {
      const [wide, high] = common(one, other);
      if (wide > 2 && high > 3 && !related(one.element, other.element)) say("text on a control", other.element, one.element);
    }
  });
  // WCAG 2.2, 2.5.8: 24 px, or that much room around the middle; links among the words of a text are excepted.
  const inText = (element) => style(element).display === "inline" && element.parentElement.textContent.trim().length > element.textContent.trim().length + 3;
  const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const small = (box) => box.right - box.left < LEAST_TARGET - 0.5 || box.bottom - box.top < LEAST_TARGET - 0.5;
  for (const one of placed) {
    if (!small(one) || inText(one.element)) continue;
    const [x, y] = middle(one);
    const near = placed.find((other) => {
      if (other === one || related(one.element, other.element)) return false;
      const [beside, below] = small(other) ? middle(other) : [Math.max(other.left, Math.min(x, other.right)), Math.max(other.top, Math.min(y, other.bottom))];
      return Math.hypot(x - beside, y - below) < (small(other) ? LEAST_TARGET : LEAST_TARGET / 2);
    });
    if (near) say(`a target of ${Math.round(one.right - one.left)}×${Math.round(one.bottom - one.top)} px`, one.element, near.element);
  }
  const held = document.activeElement;
  for (const element of controls) {
    element.focus({ preventScroll: true, focusVisible: true });
    const { outlineStyle, outlineWidth } = style(element);
    if (document.activeElement === element && (outlineStyle === "none" || parseFloat(outlineWidth) < 2)) say("no focus is seen", element);
  }
  if (held instanceof HTMLElement) held.focus({ preventScroll: true });
  else document.activeElement?.blur();
  return [...new Set(found)];
})()
