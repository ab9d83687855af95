"""DeviceFragmentation: places shares of devices where they strand the least of the remaining devices."""
