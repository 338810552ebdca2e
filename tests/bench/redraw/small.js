// The same in the size that 200 charts have on a screen.
import live from './live.js';

export default () => live([300, 100]);
