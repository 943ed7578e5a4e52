// The pointer on a map: hover, click or tap, drag, wheel, pinch and lasso.
const TAP_PIXELS = 8; // a press that moves less is a click or a tap
const REACH = { mouse: 8, pen: 12, touch: 24 }; // pixels from a point that still meet it

// What a drag does: the tool says so; shift draws a lasso; the right button or ctrl turns a map of three components.
function dragKind(map, event) {
  const tool = currentTool(), isOther = event.button === 2 || (event.ctrlKey && tool !== "lasso");
  if (event.shiftKey || (tool === "lasso" && !isOther)) return "lasso";
  if (!map.isThreeDimensional || event.button === 1) return "pan";
  return (tool === "turn") === isOther ? "pan" : "turn";
}

function isDragButton(map, { button }) {
  return button === 0 || button === 1 || (button === 2 && map.isThreeDimensional);
}

// Both fingers move the map; their distance zooms it.
function pinch(map, before, after, fixed) {
  const middle = ([ax, ay]) => [(ax + fixed[0]) / 2, (ay + fixed[1]) / 2], apart = ([ax, ay]) => Math.max(1, Math.hypot(ax - fixed[0], ay - fixed[1]));
  const [fromX, fromY] = middle(before), [toX, toY] = middle(after);
  map.panBy(toX - fromX, toY - fromY);
  map.zoom(apart(after) / apart(before), toX, toY);
}

function listenToPointer(map) {
  const { element } = map, pressed = new Map(); // pointers that are down: one for a mouse, two for a pinch
  let kind = null, add = false, began = [0, 0], isTap = false;
  const isStill = () => map !== maps[0] || Number.isInteger(position);
  const pick = (event) => (isStill() ? map.nearestPoint(...map.locate(event), REACH[event.pointerType] || REACH.mouse) : -1);

  element.addEventListener("pointerdown", (event) => {
    activeMap = map;
    if (!isDragButton(map, event) || pressed.size > 1) return;
    if (event.button === 1) event.preventDefault(); // no scroll mark
    element.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, map.locate(event));
    isTap = pressed.size === 1 && event.button === 0;
    began = map.locate(event);
    kind = pressed.size > 1 ? "pinch" : dragKind(map, event);
    add = event.ctrlKey || event.metaKey;
    map.lasso = kind === "lasso" ? [began] : null;
    element.classList.toggle("moving", kind !== "lasso");
    showCard(-1, map);
  });

  element.addEventListener("pointermove", (event) => {
    const at = map.locate(event), before = pressed.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") showCard(pick(event), map);
      return;
    }
    // A tap may tremble.
    if (isTap && Math.hypot(at[0] - began[0], at[1] - began[1]) < (event.pointerType === "touch" ? TAP_PIXELS : 3)) return;
    isTap = false;
    pressed.set(event.pointerId, at);
    if (kind === "lasso") map.lasso.push(at);
    else if (kind === "turn") turnBy(map, at[0] - before[0], at[1] - before[1]);
    else if (pressed.size === 2) pinch(map, before, at, [...pressed].find(([id]) => id !== event.pointerId)[1]);
    else map.panBy(at[0] - before[0], at[1] - before[1]);
    drawOverlays();
  });

  const release = (event) => {
    if (!pressed.delete(event.pointerId)) return;
    const polygon = map.lasso, isDone = event.type === "pointerup";
    element.classList.remove("moving");
    map.lasso = null;
    if (isDone && isTap) pinCard(pick(event), map);
    else if (isDone && polygon && polygon.length > 2) selectIds(map.pointsInside(polygon), add);
    if (pressed.size === 1) kind = "pan"; // one finger stays after a pinch
    isTap = false;
    redraw();
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", (event) => { if (!pressed.size && event.pointerType !== "touch") showCard(-1, map); });
  element.addEventListener("focusin", () => { activeMap = map; });
  element.addEventListener("dblclick", (event) => map.zoom(2, ...map.locate(event)));
  element.addEventListener("contextmenu", (event) => { if (map.isThreeDimensional) event.preventDefault(); });
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    showCard(-1, map);
    const perUnit = event.ctrlKey ? 0.01 : event.deltaMode ? 0.05 : 0.0015; // ctrl: a pinch on a touchpad
    map.zoom(Math.exp(-Math.max(-400, Math.min(400, event.deltaY)) * perUnit), ...map.locate(event));
  }, { passive: false });
}
