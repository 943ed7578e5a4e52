// The pointer on a map: hover, click or tap, drag, wheel, pinch and lasso.
const TAP_PIXELS = 8; // a press that moves less is a click or a tap
const REACH = { mouse: 8, pen: 10, touch: 22 }; // pixels from a point that still meet it

function listenToPointer(map) {
  const { element } = map, pressed = new Map(); // pointers that are down: one for a mouse, two for a pinch
  let drawing = false, add = false, began = [0, 0], moved = false;
  const pick = (event) => map.nearestPoint(...map.locate(event), REACH[event.pointerType] || REACH.mouse);
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    began = map.locate(event);
    moved = pressed.size > 0;
    pressed.set(event.pointerId, began);
    drawing = pressed.size === 1 && (isLassoOn() || event.shiftKey);
    add = event.ctrlKey || event.metaKey;
    map.lasso = drawing ? [began] : null;
    if (!drawing) element.classList.add("moving");
    showCard(-1, map);
  });
  element.addEventListener("pointermove", (event) => {
    const [px, py] = map.locate(event), before = pressed.get(event.pointerId);
    if (!before) {
      showCard(pick(event), map);
      return;
    }
    if (Math.hypot(px - began[0], py - began[1]) >= TAP_PIXELS) moved = true;
    if (drawing) {
      map.lasso.push([px, py]);
    } else if (pressed.size === 2) {
      const [, [ox, oy]] = [...pressed].find(([id]) => id !== event.pointerId);
      map.zoom(Math.hypot(px - ox, py - oy) / Math.max(1, Math.hypot(before[0] - ox, before[1] - oy)), ox, oy);
    } else {
      map.panBy(px - before[0], py - before[1]);
    }
    pressed.set(event.pointerId, [px, py]);
    redraw();
  });
  const release = (event) => {
    if (!pressed.delete(event.pointerId)) return;
    element.classList.remove("moving");
    if (drawing) {
      const polygon = map.lasso;
      map.lasso = null;
      drawing = false;
      if (event.type === "pointerup" && polygon.length > 2) selectIds(map.pointsInside(polygon), add);
    } else if (event.type === "pointerup" && !moved) {
      pinCard(pick(event), map);
    }
    redraw();
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", (event) => { if (!pressed.size && event.pointerType !== "touch") showCard(-1, map); });
  element.addEventListener("dblclick", (event) => map.zoom(2, ...map.locate(event)));
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    showCard(-1, map);
    map.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...map.locate(event));
  }, { passive: false });
}
