// The pointer on a map: hover, click or tap, drag, wheel, pinch and lasso.
const TREMBLE = { mouse: 3, pen: 5, touch: 8 }; // pixels: a press that moves less is a click or a tap
const REACH = { mouse: 8, pen: 12, touch: 24 }; // pixels from a point that still meet it

// What a drag does: the tool says so; shift draws a lasso; the right button or ctrl turns a map of three components.
function dragKind(map, event) {
  const tool = currentTool(), isOther = event.button === 2 || (event.ctrlKey && tool !== "lasso");
  if (event.shiftKey || (tool === "lasso" && !isOther)) return "lasso";
  if (!map.isThreeDimensional || event.button === 1) return "pan";
  return (tool === "turn") === isOther ? "pan" : "turn";
}

// The point under the pointer; points and images that are drawn large can be met at their edge.
function pointUnder(map, event) {
  const isBetweenStages = map === maps[0] && !Number.isInteger(position);
  if (isBetweenStages) return -1;
  const drawn = showsImages(map) ? imageHeight(map) / 2 : map.look.radius + 2;
  return map.nearestPoint(...map.locate(event), Math.max(REACH[event.pointerType] || REACH.mouse, drawn));
}

// Both fingers move the map; their distance zooms it.
function pinch(map, before, after, fixed) {
  const middle = ([x, y]) => [(x + fixed[0]) / 2, (y + fixed[1]) / 2];
  const apart = ([x, y]) => Math.max(1, Math.hypot(x - fixed[0], y - fixed[1]));
  const [fromX, fromY] = middle(before), [toX, toY] = middle(after);
  map.panBy(toX - fromX, toY - fromY);
  map.zoom(apart(after) / apart(before), toX, toY);
}

// What the pointers on one map are doing.
class Gesture {
  pressed = new Map(); // pointers that are down: one for a mouse, two for a pinch
  kind = null; // pan, turn, lasso or pinch
  isTap = false; // so far

  constructor(map) { this.map = map; }

  press(event) {
    const { map, pressed } = this, { button } = event;
    activeMap = map;
    if (pressed.size > 1 || !(button === 0 || button === 1 || (button === 2 && map.isThreeDimensional))) return;
    if (button === 1) event.preventDefault(); // no scroll mark
    map.element.setPointerCapture(event.pointerId);
    this.began = map.locate(event);
    pressed.set(event.pointerId, this.began);
    this.isTap = pressed.size === 1 && button === 0;
    this.kind = pressed.size > 1 ? "pinch" : dragKind(map, event);
    this.adds = event.ctrlKey || event.metaKey;
    map.lasso = this.kind === "lasso" ? [this.began] : null;
    map.element.classList.toggle("moving", this.kind !== "lasso");
    showCard(-1, map);
  }

  move(event) {
    const { map, pressed, kind } = this, at = map.locate(event), before = pressed.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "touch" || layers.some((layer) => layer.hover(map, event))) return;
      showCard(pointUnder(map, event), map);
      return;
    }
    if (this.isTap && Math.hypot(at[0] - this.began[0], at[1] - this.began[1]) < (TREMBLE[event.pointerType] || TREMBLE.mouse)) return;
    this.isTap = false;
    pressed.set(event.pointerId, at);
    if (kind === "lasso") map.lasso.push(at);
    else if (kind === "turn") turnBy(map, at[0] - before[0], at[1] - before[1]);
    else if (pressed.size === 2) pinch(map, before, at, [...pressed].find(([id]) => id !== event.pointerId)[1]);
    else map.panBy(at[0] - before[0], at[1] - before[1]);
    drawOverlays();
  }

  release(event) {
    const { map, pressed, isTap } = this, { lasso } = map, isDone = event.type === "pointerup";
    if (!pressed.delete(event.pointerId)) return;
    map.element.classList.remove("moving");
    map.lasso = null;
    this.isTap = false;
    if (pressed.size === 1) this.kind = "pan"; // one finger stays after a pinch
    if (isDone && isTap && !layers.some((layer) => layer.press(map, event))) pinCard(pointUnder(map, event), map);
    else if (isDone && lasso && lasso.length > 2) selectIds(pointsInside(map, lasso), this.adds);
    redraw();
  }

  leave(event) {
    if (!this.pressed.size && event.pointerType !== "touch") showCard(-1, this.map);
  }
}

function zoomByWheel(map, event) {
  const perUnit = event.ctrlKey ? 0.01 : event.deltaMode ? 0.05 : 0.0015; // ctrl: a pinch on a touchpad
  event.preventDefault();
  showCard(-1, map);
  map.zoom(Math.exp(-Math.max(-400, Math.min(400, event.deltaY)) * perUnit), ...map.locate(event));
}

function listenToPointer(map) {
  const { element } = map, gesture = new Gesture(map);
  element.addEventListener("pointerdown", (event) => gesture.press(event));
  element.addEventListener("pointermove", (event) => gesture.move(event));
  element.addEventListener("pointerup", (event) => gesture.release(event));
  element.addEventListener("pointercancel", (event) => gesture.release(event));
  element.addEventListener("pointerleave", (event) => gesture.leave(event));
  element.addEventListener("focusin", () => { activeMap = map; });
  element.addEventListener("dblclick", (event) => map.zoom(2, ...map.locate(event)));
  element.addEventListener("contextmenu", (event) => { if (map.isThreeDimensional) event.preventDefault(); });
  element.addEventListener("wheel", (event) => zoomByWheel(map, event), { passive: false });
}
