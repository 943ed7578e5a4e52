// Points written straight into the pixels of a canvas: the renderer for browsers without WebGL2.
class CanvasPoints {
  name = "canvas";
  frames = new Map(); // image data of each size

  isBusy() { return false; }

  begin() { this.began = performance.now(); }

  end(note) { note(performance.now() - this.began); }

  // Draws the points of a list on the map's canvas; `share` of them, if some are left out while the map moves.
  draw(map, { ids, split }, look, share) {
    const { canvas, context } = map, { frame, pixels } = this.frameOf(canvas);
    pixels.fill(background);
    const paint = (from, to, each, color) => this.drawDiscs(map, pixels, ids, from, to, each.radius, thicken(each.opacity, share), color);
    paint(0, split, look.dimmed, dimmedColor);
    paint(split, ids.length, look, null);
    context.putImageData(frame, 0, 0);
  }

  frameOf({ width, height }) {
    const size = `${width} ${height}`;
    if (!this.frames.has(size)) {
      if (this.frames.size > 3) this.frames.clear();
      const frame = new ImageData(width, height);
      this.frames.set(size, { frame, pixels: new Uint32Array(frame.data.buffer) });
    }
    return this.frames.get(size);
  }

  drawDiscs({ view, tints, now: { x, y }, canvas: { width, height } }, pixels, ids, from, to, size, opacity, oneColor) {
    const radius = size * view.ratio, shape = disc(radius), count = shape.length, reach = Math.ceil(radius) + 1;
    const offsets = Int32Array.from(shape, ([dx, dy]) => dy * width + dx);
    const alphas = Int32Array.from(shape, ([, , coverage]) => Math.round(256 * coverage * opacity));
    const scale = view.scale * view.ratio, x0 = width / 2 - view.x * scale, y0 = height / 2 + view.y * scale;
    for (let k = from; k < to; k++) {
      const i = ids[k], px = (x[i] * scale + x0 + 0.5) | 0, py = (y0 - y[i] * scale + 0.5) | 0;
      if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
      const center = py * width + px, color = oneColor === null ? tints[i] : oneColor;
      const redBlue = color & 0xff00ff, green = color & 0x00ff00;
      for (let j = 0; j < count; j++) {
        const at = center + offsets[j], alpha = alphas[j], under = pixels[at], rest = 256 - alpha;
        const rb = ((Math.imul(under & 0xff00ff, rest) + Math.imul(redBlue, alpha)) >>> 8) & 0xff00ff;
        const g = ((Math.imul(under & 0x00ff00, rest) + Math.imul(green, alpha)) >>> 8) & 0x00ff00;
        pixels[at] = 0xff000000 | rb | g;
      }
    }
  }
}

// The pixels of an antialiased disc: [dx, dy, coverage from 0 to 1].
function disc(radius) {
  const reach = Math.ceil(radius), found = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const coverage = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (coverage > 0.05) found.push([dx, dy, coverage]);
    }
  }
  return found;
}

// The opacity with which a share of the points looks as dense as all of them.
function thicken(opacity, share) {
  return 1 - Math.pow(1 - opacity, Math.min(8, 1 / share));
}
